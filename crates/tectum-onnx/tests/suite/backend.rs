//! ONNX's own backend tests, which `tests/backend/export.py` writes from the package `onnx`,
//! compared with the table of what passes.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tectum::{Device, Result};
use tectum_onnx::{Array, ElementType, Model, PortDim};

/// The folder that the exporter wrote; without it there is nothing to run.
const FOLDER: &str = "TECTUM_ONNX_TESTS";

/// One line of `index.tsv`.
struct Case {
    kind: String,
    name: String,
    relative: f64,
    absolute: f64,
}

fn cases(folder: &Path) -> Vec<Case> {
    let index = fs::read_to_string(folder.join("index.tsv")).expect("the exporter wrote an index");
    let case = |line: &str| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().expect("a field").to_owned();
        let (kind, name) = (next(), next());
        let mut number = || next().parse().expect("a tolerance");
        Case {
            kind,
            name,
            relative: number(),
            absolute: number(),
        }
    };
    index.lines().skip(1).map(case).collect()
}

/// How a case ended.
enum Outcome {
    Passed,
    /// Passed with these inputs known when the model was loaded.
    Bound(Vec<String>),
    /// Nothing was left to run on a device.
    Folded,
    Failed(String),
}

fn arrays(folder: &Path, prefix: &str) -> Result<Vec<Array>> {
    let mut arrays = Vec::new();
    for index in 0.. {
        let Ok(bytes) = fs::read(folder.join(format!("{prefix}_{index}.pb"))) else {
            break;
        };
        arrays.push(Array::from_bytes(&bytes)?);
    }
    Ok(arrays)
}

fn run(folder: &Path, case: &Case, device: &Device) -> Result<Outcome> {
    let folder = folder.join(&case.kind).join(&case.name);
    let model = Model::open(folder.join("model.onnx"))?;
    let data = folder.join("test_data_set_0");
    let (inputs, expected) = (arrays(&data, "input")?, arrays(&data, "output")?);
    let named: Vec<(&str, Array)> = model
        .inputs()
        .iter()
        .map(|port| port.name.as_str())
        .zip(inputs)
        .collect();
    let mut sizes: Vec<(&str, usize)> = Vec::new();
    for (port, (_, array)) in model.inputs().iter().zip(&named) {
        for (dim, size) in port.dims.iter().flatten().zip(array.dims()) {
            if let PortDim::Named(name) = dim
                && sizes.iter().all(|(known, _)| known != name)
            {
                sizes.push((name, *size));
            }
        }
    }
    // Shapes may depend on inputs: integers first, then whatever is small, then everything.
    let integers: Vec<(&str, Array)> = named
        .iter()
        .filter(|(_, array)| !array.element().is_float())
        .cloned()
        .collect();
    let small: Vec<(&str, Array)> = named
        .iter()
        .filter(|(_, array)| !array.element().is_float() || array.dims().len() <= 1)
        .cloned()
        .collect();
    let mut reason = String::new();
    for constants in [Vec::new(), integers, small, named.clone()] {
        let network = match model.load_with(&sizes, &constants) {
            Ok(network) => network,
            Err(error) => {
                if reason.is_empty() || !constants.is_empty() && reason.contains("must be known") {
                    reason = error.to_string();
                }
                continue;
            }
        };
        let is_folded = network.graph().is_none();
        let mut compiled = network.compile(device)?;
        for (name, array) in named
            .iter()
            .filter(|(name, _)| compiled_has(network.inputs(), name))
        {
            compiled.set(name, array)?;
        }
        compiled.run()?;
        for (port, wanted) in network.outputs().zip(&expected) {
            let found = compiled.output(&port.name)?;
            if let Some(difference) = difference(&found, wanted, case) {
                return Ok(Outcome::Failed(format!(
                    "output {}: {difference}",
                    port.name
                )));
            }
        }
        return Ok(match constants.is_empty() {
            _ if is_folded && !named.is_empty() => Outcome::Folded,
            true => Outcome::Passed,
            false => Outcome::Bound(
                constants
                    .into_iter()
                    .map(|(name, _)| name.to_owned())
                    .collect(),
            ),
        });
    }
    Ok(Outcome::Failed(reason))
}

fn compiled_has(ports: &[tectum_onnx::NetworkPort], name: &str) -> bool {
    ports.iter().any(|port| port.name == name)
}

/// The first difference beyond the tolerance of the case; bfloat16 has that of ONNX's own runner.
fn difference(found: &Array, wanted: &Array, case: &Case) -> Option<String> {
    if found.dims() != wanted.dims() || found.element() != wanted.element() {
        return Some(format!(
            "{:?} {}, {:?} {} expected",
            found.dims(),
            found.element(),
            wanted.dims(),
            wanted.element()
        ));
    }
    let relative = if wanted.element() == ElementType::Bf16 {
        case.relative.max(1.0 / 64.0)
    } else {
        case.relative
    };
    let (found, wanted) = (found.to_f64(), wanted.to_f64());
    let far = |(a, b): (&f64, &f64)| {
        !(a == b
            || (a.is_nan() && b.is_nan())
            || (a - b).abs() <= case.absolute + relative * b.abs())
    };
    let place = found.iter().zip(&wanted).position(far)?;
    Some(format!(
        "element {place} is {}, {} expected",
        found[place], wanted[place]
    ))
}

/// What every case does is in the table `tests/backend/table.tsv`; with `TECTUM_UPDATE` it is
/// written again. `TECTUM_ONNX_DEVICE` is another device than the CPU; what differs on software
/// Vulkan is in `tests/backend/vulkan.tsv`.
#[test]
fn onnx_backend_tests_pass_as_the_table_states() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        println!(
            "skipped: no onnx tests: {FOLDER} names no folder that tests/backend/export.py wrote"
        );
        return;
    };
    let device =
        Device::open(&std::env::var("TECTUM_ONNX_DEVICE").unwrap_or_else(|_| "cpu".to_owned()))
            .expect("the device");
    let filter = std::env::var("TECTUM_ONNX_FILTER").unwrap_or_default();
    let mut table = String::from("kind\tname\toutcome\treason\n");
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for case in cases(&folder)
        .iter()
        .filter(|case| case.name.contains(&filter))
    {
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&folder, case, &device)));
        let (outcome, reason) = match outcome {
            Ok(Ok(Outcome::Passed)) => ("passed", String::new()),
            Ok(Ok(Outcome::Bound(inputs))) => ("bound", inputs.join(" ")),
            Ok(Ok(Outcome::Folded)) => ("folded", String::new()),
            Ok(Ok(Outcome::Failed(reason))) => ("failed", reason),
            Ok(Err(error)) => ("failed", error.to_string()),
            Err(_) => ("panicked", String::new()),
        };
        *counts.entry((case.kind.clone(), outcome)).or_default() += 1;
        let reason = reason.lines().next().unwrap_or_default().replace('\t', " ");
        writeln!(table, "{}\t{}\t{outcome}\t{reason}", case.kind, case.name).expect("text grows");
    }
    println!("{counts:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/backend/table.tsv");
    if std::env::var_os("TECTUM_UPDATE").is_some() {
        fs::write(&path, &table).expect("the table is written");
    }
    // Another device passes the same, except what its own table lists; numbers that failed may
    // differ.
    let is_cpu = device.info().id == "cpu";
    let mut known = fs::read_to_string(&path).expect("the table");
    if !is_cpu {
        let own =
            fs::read_to_string(path.with_file_name("vulkan.tsv")).expect("the table of Vulkan");
        let place = |line: &str| line.split('\t').take(2).collect::<Vec<_>>().join("\t");
        let listed: Vec<String> = own.lines().map(place).collect();
        known = known
            .lines()
            .filter(|line| !listed.contains(&place(line)))
            .chain(own.lines())
            .collect::<Vec<_>>()
            .join("\n");
    }
    let compared = |line: &str| {
        line.split('\t')
            .take(if is_cpu || !line.contains("\tfailed\t") {
                4
            } else {
                3
            })
            .collect::<Vec<_>>()
            .join("\t")
    };
    let known: HashSet<String> = known.lines().map(compared).collect();
    let wrong: Vec<&str> = table
        .lines()
        .filter(|line| !known.contains(&compared(line)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} lines differ from tests/backend/table.tsv:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
