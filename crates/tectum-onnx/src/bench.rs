//! The suite of `tectum bench policy`: networks that `crates/tectum-onnx/tests/models/export.py`
//! exports to `bench/models/policy`.

use std::path::{Path, PathBuf};

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CodeObject, DType, Device, DeviceKind, Result, RunStats};
use tectum_bench::bench::{Case, Roofline, Suite, Workload};

use super::{CompiledNetwork, Model};

/// A network's file without its ending, what its rate is compared with, and the bytes of its
/// weights in f32 or its operations.
const NETWORKS: [(&str, Roofline, f64); 10] = [
    ("rsl_mlp", Roofline::Copy, 4.0 * 190_604.0),
    ("rsl_lstm", Roofline::Copy, 4.0 * 413_324.0),
    ("rsl_gru", Roofline::Copy, 4.0 * 334_988.0),
    ("sb3_cnn", Roofline::Gemm, 18.7e6),
    ("diffusion_unet", Roofline::Copy, 4.0 * 17.4e6),
    ("resnet18", Roofline::Gemm, 3.63e9),
    ("mobilenet_v3_large", Roofline::Gemm, 0.433e9),
    ("efficientnet_b0", Roofline::Gemm, 0.77e9),
    ("vit_b_16", Roofline::Gemm, 35.1e9),
    ("act", Roofline::Gemm, 9.6e9),
];

/// Networks that are measured with weights of fewer bits too.
const IN_FEWER_BITS: [&str; 2] = ["rsl_mlp", "rsl_lstm"];

/// The suite, without rows for files that are absent.
pub fn suite() -> Suite {
    Suite {
        name: "policy",
        about: "trained policies and vision networks at batch 1 (crates/tectum-onnx/tests/models/export.py makes them)",
        cases,
    }
}

fn cases(device: &Device) -> Vec<Case> {
    let info = device.info();
    let threads: Vec<Option<usize>> = match info.kind {
        DeviceKind::Cpu => [1, 2]
            .into_iter()
            .filter(|count| *count <= info.compute_units.unwrap_or(1) as usize)
            .map(Some)
            .collect(),
        _ => vec![None],
    };
    let mut cases = Vec::new();
    for threads in threads {
        for (name, roofline, amount) in NETWORKS {
            let Some(file) = found(&format!("{name}_script.onnx")) else {
                continue;
            };
            let formats = if IN_FEWER_BITS.contains(&name) {
                &[PanelFormat::F32, PanelFormat::F16, PanelFormat::Int8][..]
            } else {
                &[PanelFormat::F32]
            };
            cases.extend(
                formats
                    .iter()
                    .map(|format| case(&file, name, (roofline, amount), *format, threads)),
            );
        }
    }
    cases
}

/// A file of `bench/models/policy`, in this or the nearest parent folder that has it.
fn found(file: &str) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .map(|place| place.join("bench/models/policy").join(file))
        .find(|path| path.exists())
}

fn case(
    file: &Path,
    name: &str,
    (roofline, amount): (Roofline, f64),
    format: PanelFormat,
    threads: Option<usize>,
) -> Case {
    let file = file.to_owned();
    let weights = if format == PanelFormat::F32 {
        String::new()
    } else {
        format!(".{format}")
    };
    let bytes = match format {
        PanelFormat::F32 => 1.0,
        PanelFormat::F16 | PanelFormat::Bf16 => 0.5,
        PanelFormat::Int8 => 0.25,
    };
    Case {
        key: format!(
            "policy.{name}{weights}{}",
            threads.map_or_else(String::new, |threads| format!(".t{threads}"))
        ),
        roofline,
        threads,
        amount: amount * bytes,
        prepare: Box::new(move |device| {
            // Called from this thread, as a control loop does: no other thread is woken for a small
            // network.
            let device = threads.map_or_else(
                || Ok(device.clone()),
                |threads| Device::cpu().threads(threads).open(),
            )?;
            Ok(Box::new(Policy::new(&file, &device, format)?))
        }),
        alternatives: Vec::new(),
    }
}

/// A network with its inputs, which are given before every run.
struct Policy {
    network: CompiledNetwork,
    inputs: Vec<(String, Numbers)>,
    outputs: Vec<(String, DType)>,
    code: Vec<CodeObject>,
}

enum Numbers {
    Floats(Vec<f32>),
    Integers(Vec<i32>),
}

impl Policy {
    fn new(file: &Path, device: &Device, format: PanelFormat) -> Result<Self> {
        let network = Model::open(file)?.load(&[])?.compile_as(device, format)?;
        let numbers = |len: usize, dtype: DType| match dtype {
            DType::F32 => Numbers::Floats(
                (0..len)
                    .map(|index| (index * 7919 % 1000 + 1) as f32 / 1000.0)
                    .collect(),
            ),
            _ => Numbers::Integers((0..len).map(|index| (index * 7919 % 256) as i32).collect()),
        };
        let inputs = network
            .inputs()
            .iter()
            .map(|port| {
                (
                    port.name.clone(),
                    numbers(port.dims.iter().product(), port.element.dtype()),
                )
            })
            .collect();
        let outputs = network
            .outputs()
            .map(|port| (port.name.clone(), port.element.dtype()))
            .collect();
        let code = network.code();
        Ok(Self {
            network,
            inputs,
            outputs,
            code,
        })
    }
}

impl Workload for Policy {
    fn run(&mut self) -> Result<RunStats> {
        for (name, numbers) in &self.inputs {
            match numbers {
                Numbers::Floats(values) => self.network.set_floats(name, values)?,
                Numbers::Integers(values) => self.network.set_integers(name, values)?,
            }
        }
        let stats = self.network.run()?;
        for (name, dtype) in &self.outputs {
            match dtype {
                DType::F32 => drop(std::hint::black_box(self.network.floats(name)?)),
                _ => drop(std::hint::black_box(self.network.integers(name)?)),
            }
        }
        Ok(stats)
    }

    fn code(&self) -> &[CodeObject] {
        &self.code
    }
}
