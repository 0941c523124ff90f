//! Broken files: an error or a result, never a panic, in bounded memory and time.
//!
//! `TECTUM_FUZZ_CASES` is the number of cases, `TECTUM_FUZZ_SEED` their start, and
//! `TECTUM_FUZZ_FOLDER` a folder whose files `model.onnx`, at any depth, are broken instead of
//! those of `small_models`.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rten_onnx::onnx::{GraphProto, ModelProto};
use tectum_onnx::{Array, Model, PortDim};

/// A generator of numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a mut [T]) -> Option<&'a mut T> {
        let index = self.below(all.len());
        all.get_mut(index)
    }

    /// A number that sizes, axes and counts do not expect.
    fn extreme(&mut self) -> i64 {
        const ALL: [i64; 20] = [
            0,
            1,
            2,
            3,
            7,
            -1,
            -2,
            -7,
            255,
            256,
            65_536,
            1 << 20,
            1 << 28,
            1 << 31,
            (1 << 32) - 1,
            1 << 40,
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            -(1 << 31),
        ];
        ALL[self.below(ALL.len())]
    }
}

/// Changes one thing of a graph or a graph within it; false if it has no such thing.
fn change(graph: &mut GraphProto, random: &mut Random) -> bool {
    match random.below(10) {
        0..4 => {
            let Some(node) = random.pick(&mut graph.node) else {
                return false;
            };
            let Some(attribute) = random.pick(&mut node.attribute) else {
                return false;
            };
            if let Some(inner) = &mut attribute.g {
                return change(inner, random);
            }
            let extreme = random.extreme();
            if let Some(number) = &mut attribute.i {
                *number = extreme;
            } else if let Some(number) = random.pick(&mut attribute.ints) {
                *number = extreme;
            } else if let Some(number) = &mut attribute.f {
                *number = [0.0, f32::NAN, f32::INFINITY, -1.0, f32::MAX][random.below(5)];
            } else {
                attribute.s = Some(
                    [
                        "",
                        "reflect",
                        "wrap",
                        "edge",
                        "ij,jk",
                        "...->",
                        "SAME_LOWER",
                        "bidirectional",
                    ][random.below(8)]
                    .to_owned(),
                );
            }
            true
        }
        4..7 => {
            let Some(tensor) = random.pick(&mut graph.initializer) else {
                return false;
            };
            let extreme = random.extreme();
            let place = random.below(tensor.dims.len().max(1));
            if random.below(2) == 0
                && let Some(number) = random.pick(&mut tensor.int64_data)
            {
                *number = extreme;
            } else if let Some(number) = random.pick(&mut tensor.int32_data) {
                *number = extreme as i32;
            } else if let Some(raw) = &tensor.raw_data {
                let mut raw = raw.borrow_mut();
                let start = random.below(raw.len() / 8) * 8;
                if let Some(word) = raw.get_mut(start..start + 8) {
                    word.copy_from_slice(&extreme.to_le_bytes());
                }
            } else if let Some(dim) = tensor.dims.get_mut(place) {
                *dim = extreme;
            } else {
                tensor.dims.push(1);
            }
            true
        }
        7 => {
            // A node reads other values.
            let names: Vec<String> = graph
                .node
                .iter()
                .flat_map(|node| node.output.clone())
                .chain(
                    graph
                        .initializer
                        .iter()
                        .filter_map(|tensor| tensor.name.clone()),
                )
                .collect();
            let Some(node) = random.pick(&mut graph.node) else {
                return false;
            };
            let Some(input) = random.pick(&mut node.input) else {
                return false;
            };
            *input = names
                .get(random.below(names.len() + 1))
                .cloned()
                .unwrap_or_default();
            true
        }
        8 => {
            let Some(port) = random.pick(&mut graph.input) else {
                return false;
            };
            let shape = port
                .r#type
                .as_mut()
                .and_then(|kind| kind.tensor_type.as_mut())
                .and_then(|tensor| tensor.shape.as_mut());
            let Some(dim) = shape.and_then(|shape| random.pick(&mut shape.dim)) else {
                return false;
            };
            dim.dim_value = Some(random.extreme());
            true
        }
        _ => {
            let operators: Vec<Option<String>> =
                graph.node.iter().map(|node| node.op_type.clone()).collect();
            let other = operators
                .get(random.below(operators.len()))
                .cloned()
                .flatten();
            let supported = tectum_onnx::supported_operators();
            let (domain, any) = supported[random.below(supported.len())];
            let Some(node) = random.pick(&mut graph.node) else {
                return false;
            };
            if random.below(2) == 0 {
                node.op_type = other;
            } else {
                (node.domain, node.op_type) = (Some(domain.to_owned()), Some(any.to_owned()));
            }
            true
        }
    }
}

/// Changes bytes without regard to what they are.
fn spoil(bytes: &mut Vec<u8>, random: &mut Random, other: &[u8]) {
    for _ in 0..1 + random.below(3) {
        let place = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(place),
            1 => {
                // A length or number of up to ten bytes.
                let len = random.below(10);
                let number = (0..len).map(|_| 0xff).chain([random.next() as u8 & 0x7f]);
                bytes.splice(place..bytes.len().min(place + 1), number);
            }
            2 => {
                let (start, len) = (random.below(other.len()), random.below(64));
                let part = other
                    .get(start..other.len().min(start + len))
                    .unwrap_or_default()
                    .to_vec();
                bytes.splice(place..bytes.len().min(place + random.below(16)), part);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
}

/// Reads and loads a file; with inputs known when it is loaded if `binds`.
fn load(bytes: &[u8], binds: bool) -> bool {
    let Ok(model) = Model::from_bytes(bytes) else {
        return false;
    };
    let mut constants = Vec::new();
    for port in model.inputs().iter().filter(|_| binds) {
        let dims: Vec<usize> = port
            .dims
            .iter()
            .flatten()
            .map(|dim| {
                if let PortDim::Size(size) = dim {
                    *size
                } else {
                    2
                }
            })
            .collect();
        let len = dims
            .iter()
            .try_fold(1usize, |product, dim| product.checked_mul(*dim))
            .filter(|len| *len <= 1 << 12);
        if let (Some(element), Some(len)) = (port.element, len)
            && let Ok(array) = Array::new(
                element,
                &dims,
                (0..len).map(|place| (place % 5) as f64).collect(),
            )
        {
            constants.push((port.name.as_str(), array));
        }
    }
    model.load_with(&[], &constants).is_ok()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("the folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "onnx")
        {
            let bytes = fs::read(&path).expect("the file");
            found.push((path.display().to_string(), bytes));
        }
    }
}

/// Peak memory of the process in KiB; none where the system does not report it.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix(" kB")?
            .parse()
            .ok()
    })
}

#[test]
fn small_models_load() {
    for (name, model) in super::small_models::all() {
        let bytes = model.write_buf().expect("a model");
        let model = Model::from_bytes(&bytes).expect("a model");
        model
            .load(&[])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn broken_files_are_refused_without_panic() {
    let cases = number("TECTUM_FUZZ_CASES").unwrap_or(2000);
    let seed = number("TECTUM_FUZZ_SEED").unwrap_or(1);
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    match std::env::var_os("TECTUM_FUZZ_FOLDER") {
        Some(folder) => files(Path::new(&folder), &mut all),
        None => all.extend(
            super::small_models::all()
                .into_iter()
                .map(|(name, model)| (name.to_owned(), model.write_buf().expect("a model"))),
        ),
    }
    let (mut panics, mut slow, mut loaded) = (Vec::new(), Vec::new(), 0);
    for case in seed..seed + cases {
        let mut random = Random(case.wrapping_mul(0x1234_5678_9abc_def1));
        let (name, bytes) = &all[case as usize % all.len()];
        let mut broken = bytes.clone();
        if random.below(3) > 0
            && let Ok(mut model) = ModelProto::parse_buf(bytes)
            && let Some(graph) = &mut model.graph
        {
            for _ in 0..1 + random.below(2) {
                change(graph, &mut random);
            }
            broken = model.write_buf().expect("a model");
        } else {
            let other = &all[random.below(all.len())].1;
            spoil(&mut broken, &mut random, other);
        }
        let binds = random.below(2) == 0;
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| load(&broken, binds))) {
            Ok(is_loaded) => loaded += u64::from(is_loaded),
            Err(_) => panics.push(format!("{name}, case {case}")),
        }
        if start.elapsed() > Duration::from_secs(5) {
            slow.push(format!("{name}, case {case}: {:?}", start.elapsed()));
        }
    }
    eprintln!(
        "{cases} cases, {loaded} loaded, {} panics, {} slow, at most {:?} KiB",
        panics.len(),
        slow.len(),
        peak_kib()
    );
    slow.iter().for_each(|slow| eprintln!("slow: {slow}"));
    assert!(
        panics.is_empty(),
        "{} panics:\n{}",
        panics.len(),
        panics
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert!(
        peak_kib().is_none_or(|peak| peak < 8 << 20),
        "more than 8 GiB"
    );
}
