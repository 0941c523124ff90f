//! Operators of the domains `ai.onnx.ml` and `com.microsoft`: models that `tests/domains/export.py`
//! writes, next to ONNX Runtime's outputs, which are stored with them.

use std::fs;
use std::path::{Path, PathBuf};

use tectum::{Device, ErrorKind};
use tectum_onnx::{Array, ElementType, Model, Network};

/// f32 sums in another order.
const TOLERANCE: f64 = 2e-6;

/// Steps of bytes that the state of an LSTM may be off by: rounding differs where a state lies
/// between two bytes.
const LSTM_TOLERANCE: f64 = 4e-3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/domains")
}

fn arrays(folder: &Path, prefix: &str) -> Vec<Array> {
    (0..)
        .map_while(|index| fs::read(folder.join(format!("{prefix}_{index}.pb"))).ok())
        .map(|bytes| Array::from_bytes(&bytes).expect("a tensor"))
        .collect()
}

/// The outputs of a network for the inputs of a case.
fn computed(network: &Network, inputs: &[Array], device: &Device) -> Vec<Array> {
    let mut compiled = network.compile(device).expect("compiled");
    let names: Vec<String> = network
        .inputs()
        .iter()
        .map(|port| port.name.clone())
        .collect();
    for (name, array) in names.iter().zip(inputs) {
        compiled.set(name, array).expect("fed");
    }
    compiled.run().expect("a run");
    let names: Vec<String> = network.outputs().map(|port| port.name.clone()).collect();
    names
        .iter()
        .map(|name| compiled.output(name).expect("an output"))
        .collect()
}

/// The first difference of two tensors.
fn difference(found: &Array, expected: &Array, tolerance: f64) -> Option<String> {
    if found.dims() != expected.dims() || found.element() != expected.element() {
        return Some(format!(
            "{:?} {}, {:?} {} expected",
            found.dims(),
            found.element(),
            expected.dims(),
            expected.element()
        ));
    }
    let pairs = found.to_f64().into_iter().zip(expected.to_f64());
    let far = |(a, b): &(f64, f64)| a.is_nan() || (a - b).abs() > tolerance * (1.0 + b.abs());
    pairs
        .enumerate()
        .find(|(_, pair)| far(pair))
        .map(|(at, (a, b))| format!("element {at} is {a}, {b} expected"))
}

#[test]
fn models_of_other_domains_give_the_outputs_of_onnx_runtime() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .expect("the folder")
        .flatten()
        .filter(|entry| entry.path().join("model.onnx").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() > 40, "{} cases", names.len());
    let mut faults = Vec::new();
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: models of other domains");
            continue;
        };
        for name in &names {
            let folder = folder().join(name);
            let model = Model::open(folder.join("model.onnx")).expect("a model");
            let (inputs, expected) = (arrays(&folder, "input"), arrays(&folder, "output"));
            let sizes: Vec<(String, usize)> = (model.inputs().iter().zip(&inputs))
                .flat_map(|(port, array)| {
                    port.open_axes()
                        .map(|(axis, name)| (name, array.dims()[axis]))
                        .collect::<Vec<_>>()
                })
                .collect();
            let sizes: Vec<(&str, usize)> =
                (sizes.iter().map(|(name, size)| (&name[..], *size))).collect();
            let outputs: Vec<&str> = (model.outputs().iter())
                .map(|port| port.name.as_str())
                .take(expected.len())
                .collect();
            let network = match model.load_outputs(&sizes, &outputs) {
                Ok(network) => network,
                Err(error) => {
                    faults.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let tolerance = if name.starts_with("dynamic_lstm") {
                LSTM_TOLERANCE
            } else {
                TOLERANCE
            };
            let found = computed(&network, &inputs, &device);
            for ((found, expected), output) in found.iter().zip(&expected).zip(&outputs) {
                if let Some(difference) = difference(found, expected, tolerance) {
                    faults.push(format!("{id}: {name}, output {output}: {difference}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn maps_are_refused_with_what_to_do_instead() {
    let model = Model::open(folder().join("sklearn_zipmap/model.onnx")).expect("a model");
    let sizes = [("X.0", 6)];
    let error = model.load(&sizes).expect_err("a map is no tensor");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let message = error.to_string();
    assert!(
        message.contains("output \"output_probability\": ZipMap makes maps")
            && message.contains("choose another output"),
        "{message}"
    );
    let (network, others) = model.load_supported(&sizes).expect("the label");
    let port = network.outputs().next().expect("an output");
    assert_eq!(
        (port.name.as_str(), port.element),
        ("output_label", ElementType::I64)
    );
    assert_eq!(others.len(), 1);
}
