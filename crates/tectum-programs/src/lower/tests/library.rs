//! The programs under `programs/` on every device, through plans, compared with expected values
//! computed in f64; unchanged, and as recognised.

use tectum::Device;

use super::devices::devices;
use crate::tests::library::{Job, cases};
use crate::{BufferAccess, BufferIndex, Checked, Contents, LaunchConfig, Program, Recognize};

const EVERY: [Recognize; 3] = [Recognize::Off, Recognize::Exact, Recognize::Reassociated];

/// The last buffer after a run, and the shape that ran.
fn run_on(
    device: &Device,
    program: &Checked,
    launch: &LaunchConfig,
    buffers: &[Vec<u8>],
    recognize: Recognize,
) -> tectum::Result<(Vec<u8>, &'static str)> {
    let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
    let declared = program.program().buffers();
    let is_count = |index: usize| {
        declared[index].access == BufferAccess::Read && declared[index].ty.is_integer()
    };
    let given = |index: usize| (BufferIndex(index as u32), buffers[index].as_slice());
    let contents: Vec<_> = (0..buffers.len())
        .filter(|index| is_count(*index))
        .map(given)
        .collect();
    let contents: &Contents<'_> = &contents;
    let mut run = program
        .bound(launch, &sizes)?
        .plan_as(recognize, contents)?
        .compile(device)?;
    let shape = run.recorded().recognized().shape().name();
    let known = run.recorded().recognized().known().to_vec();
    for (index, bytes) in (0..)
        .map(BufferIndex)
        .zip(buffers)
        .take(buffers.len() - 1)
        .filter(|(index, _)| !known.contains(index))
    {
        run.input(index).copy_from_slice(bytes);
    }
    run.run()?;
    Ok((
        run.output(BufferIndex(buffers.len() as u32 - 1)).to_vec(),
        shape,
    ))
}

fn run_job(
    device: &Device,
    name: &str,
    n: u32,
    job: &Job,
    recognize: Recognize,
) -> (Vec<u8>, &'static str) {
    let id = &device.info().id;
    let ran = run_on(device, &job.program, &job.launch, &job.buffers, recognize);
    let (result, shape) =
        ran.unwrap_or_else(|error| panic!("{id}: {name}, n = {n}, {recognize:?}: {error}"));
    let fault = job.fault(&result);
    assert!(
        fault.is_none(),
        "{id}: {name}, n = {n}, {recognize:?}, {shape}: {}",
        fault.unwrap_or_default()
    );
    (result, shape)
}

#[test]
fn every_device_is_right_at_every_size() {
    let devices = devices("the library of programs");
    for (name, case) in cases() {
        for n in [1, 3, 1_024, 3_073, 65_536, 1_000_007] {
            let job = case(n);
            for device in &devices {
                run_job(device, name, n, &job, Recognize::Off);
            }
        }
    }
}

/// The shape of a program of the library if sums may change their order, and if not.
fn shapes(name: &str) -> [&'static str; 2] {
    match name {
        "reduce_sum" => ["reduction", "general"],
        "reduce_min" | "reduce_max" => ["reduction", "reduction"],
        "matvec" => ["matvec", "general"],
        "gemm" => ["gemm", "general"],
        "softmax" | "mse" | "cross_entropy" | "bce" => ["general", "general"],
        _ => ["map", "map"],
    }
}

/// Results are within the tolerance of each program; exact maps, minima and maxima on the CPU equal
/// the program's bit for bit.
#[test]
fn what_the_library_is_recognised_as_gives_what_it_gives() {
    let devices = devices("the recognised library of programs");
    for (name, case) in cases() {
        for n in [1, 3, 1_024, 3_073, 65_536] {
            let job = case(n);
            for device in &devices {
                let [(plain, off), (exact, kept), (_, changed)] =
                    EVERY.map(|recognize| run_job(device, name, n, &job, recognize));
                assert!(
                    device.info().id != "cpu" || plain == exact,
                    "{name}, n = {n}"
                );
                assert_eq!(off, "general");
                assert!(
                    n < 1_024 || [changed, kept] == shapes(name),
                    "{name}, n = {n}: {changed}, {kept}"
                );
            }
        }
    }
}

/// Integer results are bit-identical in any order.
#[test]
fn integers_do_not_depend_on_recognition() {
    let changes = [
        ("f32", "i32"),
        ("-inf", "-2147483648"),
        ("inf", "2147483647"),
        ("0.0", "0"),
    ];
    let elementwise = [
        "vector_add",
        "vector_sub",
        "vector_mul",
        "vector_min",
        "vector_max",
        "abs",
        "neg",
        "relu",
        "copy",
        "scalar_add",
        "scalar_sub",
        "scalar_mul",
        "clip",
        "fill",
    ];
    let devices = devices("the library of programs, of integers");
    for (name, expected) in elementwise
        .map(|name| (name, "map"))
        .into_iter()
        .chain(["reduce_sum", "reduce_min", "reduce_max"].map(|name| (name, "tree")))
    {
        let path = format!("{}/programs/{name}.atlas", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let text = changes
            .iter()
            .fold(text, |text, (from, to)| text.replace(from, to));
        let program = Program::parse(&text)
            .and_then(|program| program.check())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for n in [1, 3, 1_024, 3_073, 65_536u64] {
            let value = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
            let buffers: Vec<Vec<u8>> = program
                .program()
                .buffers()
                .iter()
                .enumerate()
                .map(|(place, buffer)| match (buffer.name.as_str(), place) {
                    ("n", _) => n.to_le_bytes().to_vec(),
                    ("y", _) if expected == "tree" => vec![0; 4],
                    ("s" | "range", _) => (7..9u32)
                        .take(constants(&program, place))
                        .flat_map(u32::to_le_bytes)
                        .collect(),
                    (_, place) => (0..n)
                        .flat_map(|i| value(i + 1_000 * place as u64).to_le_bytes())
                        .collect(),
                })
                .collect();
            let launch = if expected == "tree" {
                LaunchConfig::linear(256, 256)
            } else {
                LaunchConfig::linear(n as u32, 256)
            };
            for device in &devices {
                let [plain, exact, changed] = EVERY.map(|recognize| {
                    run_on(device, &program, &launch, &buffers, recognize)
                        .unwrap_or_else(|error| panic!("{name}, n = {n}: {error}"))
                });
                assert_eq!(
                    (&plain.0, &plain.0),
                    (&exact.0, &changed.0),
                    "{name}, n = {n}, {device:?}"
                );
                assert!(
                    n == 1 || (exact.1, changed.1) == (expected, expected),
                    "{name}, n = {n}: {}",
                    exact.1
                );
            }
        }
    }
}

/// Elements of a buffer that is read only at constant offsets.
fn constants(program: &Checked, place: usize) -> usize {
    program
        .program()
        .constant_extent(BufferIndex(place as u32))
        .map_or(0, |bytes| bytes as usize / 4)
}
