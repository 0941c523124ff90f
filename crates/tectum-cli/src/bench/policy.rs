//! `tectum bench POLICY.onnx`: one inference of a policy on each device and in each format of its
//! weights, next to ONNX Runtime.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{DType, Device, Error, Result};
use tectum_onnx::{CompiledNetwork, Model, Network};

use crate::interrupt::Interrupt;
use crate::messages;
use crate::table::{print, print_json, table};

/// The formats of weights that are measured.
const FORMATS: [PanelFormat; 3] = [PanelFormat::F32, PanelFormat::F16, PanelFormat::Int8];

/// How long each row runs in a round.
const ROUND: Duration = Duration::from_millis(100);

/// Inferences of a row in a round, whatever they take.
const RUNS: std::ops::RangeInclusive<usize> = 3..=2000;

/// The other program, which answers each line with the times of as many inferences.
const SCRIPT: &str = include_str!("policy.py");

/// How to get what is missing.
const INSTALL: &str = "`python3 -m pip install onnxruntime` in the environment of python3, or `cargo xtask peers onnxruntime`, lets it be measured";

/// What is measured and how.
pub struct Settings<'a> {
    /// Devices with commas between them.
    pub devices: &'a str,
    pub rounds: usize,
    /// Whether ONNX Runtime is measured too.
    pub has_peer: bool,
    /// The folder with environments of peers.
    pub peers: Option<PathBuf>,
    pub json: bool,
}

/// A row of the output.
#[derive(Serialize)]
struct Row {
    device: String,
    weights: String,
    median_us: f64,
    p99_us: f64,
    /// ONNX Runtime's median divided by this one: the median, minimum and maximum of the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    onnxruntime: Option<[f64; 3]>,
}

/// Measures and prints.
///
/// # Errors
/// A file that is not valid; an unknown device; what the device reports.
pub fn bench(path: &Path, settings: &Settings<'_>) -> Result<()> {
    let model = Model::open(path)?;
    let (network, others) = model
        .load_supported(&[])
        .map_err(|error| error.at(path.display()))?;
    for (output, error) in &others {
        messages::warning(format!("output {output} is left out: {error}"));
    }
    let mut runs = Vec::new();
    for id in settings.devices.split(',') {
        let device = Device::open(id.trim())?;
        for format in FORMATS {
            runs.push(Run::new(&network, &device, format)?);
        }
    }
    let threads = Device::open("cpu")?.info().compute_units.unwrap_or(1);
    let mut peer = match settings.has_peer {
        true => Peer::start(path, &network, threads as usize, settings.peers.as_deref()),
        false => Err(String::new()),
    };
    let interrupt = Interrupt::watch()?;
    let mut peer_times: Vec<Vec<f64>> = Vec::new();
    for round in 0..settings.rounds {
        if interrupt.is_raised() {
            messages::warning(format!("interrupted: {round} rounds measured"));
            break;
        }
        for run in &mut runs {
            run.round()?;
        }
        if let Ok(running) = &mut peer {
            match running.round() {
                Ok(times) => peer_times.push(times),
                Err(reason) => peer = Err(reason),
            }
        }
    }
    let rows = rows(&runs, &peer_times);
    if settings.json {
        return print_json(
            &json!({ "model": path.display().to_string(), "threads": threads, "rows": rows }),
        );
    }
    let mut text = shown(&rows);
    text += &match peer {
        Ok(peer) => format!(
            "\nonnxruntime {} through Python, CPU threads: {threads}; a ratio above 1: Tectum is faster [minimum, maximum of {} rounds]\n",
            peer.version,
            peer_times.len()
        ),
        Err(reason) if reason.is_empty() => String::new(),
        Err(reason) => format!("\nONNX Runtime is not measured: {reason}; {INSTALL}\n"),
    };
    print(&text)
}

/// The rows in the order of the runs, then that of ONNX Runtime.
fn rows(runs: &[Run], peer: &[Vec<f64>]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for run in runs {
        let ratios = run.times.iter().zip(peer);
        let mut ratios: Vec<f64> = ratios
            .map(|(own, peer)| quantile(peer, 0.5) / quantile(own, 0.5))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let all = run.times.concat();
        rows.push(Row {
            device: run.device.clone(),
            weights: run.format.name().to_owned(),
            median_us: quantile(&all, 0.5),
            p99_us: quantile(&all, 0.99),
            onnxruntime: (!ratios.is_empty())
                .then(|| [quantile(&ratios, 0.5), ratios[0], ratios[ratios.len() - 1]]),
        });
    }
    if !peer.is_empty() {
        let all = peer.concat();
        rows.push(Row {
            device: "onnxruntime".to_owned(),
            weights: "as in the file".to_owned(),
            median_us: quantile(&all, 0.5),
            p99_us: quantile(&all, 0.99),
            onnxruntime: None,
        });
    }
    rows
}

fn shown(rows: &[Row]) -> String {
    let time = |us: f64| {
        if us < 1000.0 {
            format!("{us:.1} µs")
        } else {
            format!("{:.2} ms", us / 1000.0)
        }
    };
    let head = ["device", "weights", "median", "p99", "onnxruntime"].map(str::to_owned);
    let cells = rows.iter().map(|row| {
        let ratio = row
            .onnxruntime
            .map_or_else(String::new, |[median, minimum, maximum]| {
                format!("{median:.2} [{minimum:.2}, {maximum:.2}]")
            });
        vec![
            row.device.clone(),
            row.weights.clone(),
            time(row.median_us),
            time(row.p99_us),
            ratio,
        ]
    });
    let all: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(cells).collect();
    table(&all)
}

/// A number that a part of the times is at most.
fn quantile(times: &[f64], part: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((part * last as f64).round() as usize)
        .copied()
        .unwrap_or(f64::NAN)
}

/// As many runs as fill a round, of a time that one took.
fn runs_of(one: Duration) -> usize {
    let fits = ROUND.as_secs_f64() / one.as_secs_f64().max(1e-9);
    (fits as usize).clamp(*RUNS.start(), *RUNS.end())
}

/// A network on a device in a format.
struct Run {
    device: String,
    format: PanelFormat,
    network: CompiledNetwork,
    inputs: Vec<(String, Numbers)>,
    outputs: Vec<(String, DType)>,
    /// Microseconds of each inference, by round.
    times: Vec<Vec<f64>>,
    runs: usize,
}

enum Numbers {
    Floats(Vec<f32>),
    Integers(Vec<i32>),
}

impl Run {
    /// Compiles it, and runs it once to know how long that takes.
    fn new(network: &Network, device: &Device, format: PanelFormat) -> Result<Self> {
        let network = network.compile_as(device, format)?;
        let ports = network.inputs().iter().map(|port| {
            let len: usize = port.dims.iter().product();
            let numbers = if port.element.dtype() == DType::F32 {
                Numbers::Floats((0..len).map(float).collect())
            } else {
                Numbers::Integers((0..len).map(integer).collect())
            };
            (port.name.clone(), numbers)
        });
        let outputs: Vec<(String, DType)> = network
            .outputs()
            .map(|port| (port.name.clone(), port.element.dtype()))
            .collect();
        let mut run = Self {
            device: device.info().id.clone(),
            format,
            inputs: ports.collect(),
            outputs: Vec::new(),
            network,
            times: Vec::new(),
            runs: 0,
        };
        run.infer()?;
        // Those that are known without a run are not read.
        let computed = outputs
            .into_iter()
            .filter(|(name, dtype)| run.read(name, *dtype).is_ok());
        run.outputs = computed.collect();
        let start = Instant::now();
        run.infer()?;
        run.runs = runs_of(start.elapsed());
        Ok(run)
    }

    fn round(&mut self) -> Result<()> {
        let mut times = Vec::with_capacity(self.runs);
        for _ in 0..self.runs {
            let start = Instant::now();
            self.infer()?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        self.times.push(times);
        Ok(())
    }

    /// Inputs in, outputs out.
    fn infer(&mut self) -> Result<()> {
        if self.network.device().is_none() {
            return Err(Error::invalid("all outputs are known without a run"));
        }
        for (name, numbers) in &self.inputs {
            match numbers {
                Numbers::Floats(values) => self.network.set_floats(name, values)?,
                Numbers::Integers(values) => self.network.set_integers(name, values)?,
            }
        }
        self.network.run()?;
        for (name, dtype) in &self.outputs {
            self.read(name, *dtype)?;
        }
        Ok(())
    }

    fn read(&self, name: &str, dtype: DType) -> Result<()> {
        if dtype == DType::F32 {
            std::hint::black_box(self.network.floats(name)?);
        } else {
            std::hint::black_box(self.network.integers(name)?);
        }
        Ok(())
    }
}

/// The element of an input at a place; the script makes the same.
fn float(at: usize) -> f32 {
    (at * 7919 % 1000 + 1) as f32 / 1000.0
}

/// As [`float`], for integers; truth values are the last bit.
fn integer(at: usize) -> i32 {
    (at * 7919 % 2) as i32
}

/// ONNX Runtime in another process.
struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
    runs: usize,
}

impl Peer {
    /// Starts it on the same inputs and outputs; the reason if that is not possible.
    fn start(
        path: &Path,
        network: &Network,
        threads: usize,
        peers: Option<&Path>,
    ) -> std::result::Result<Self, String> {
        let own = peers.map(|folder| folder.join(".venv-onnxruntime/bin/python"));
        let python = own
            .filter(|python| python.is_file())
            .unwrap_or_else(|| PathBuf::from("python3"));
        let mut process = Command::new(&python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("it has no input and output".to_owned());
        };
        let mut peer = Self {
            process,
            requests,
            answers: BufReader::new(answers),
            version: String::new(),
            runs: 0,
        };
        let inputs: Vec<_> = network
            .inputs()
            .iter()
            .map(|port| json!({ "name": port.name, "shape": port.dims, "type": port.element.name() }))
            .collect();
        let outputs: Vec<&str> = network.outputs().map(|port| port.name.as_str()).collect();
        let request =
            json!({ "model": path, "threads": threads, "inputs": inputs, "outputs": outputs });
        let answer = peer.ask(&request.to_string())?;
        let field = |name: &str| {
            answer
                .get(name)
                .and_then(|value| value.as_str().map(str::to_owned))
        };
        if let Some(reason) = field("error") {
            return Err(reason);
        }
        peer.version = field("version").unwrap_or_default();
        let one = answer.get("seconds").and_then(serde_json::Value::as_f64);
        peer.runs = runs_of(Duration::from_secs_f64(one.unwrap_or(1.0)));
        Ok(peer)
    }

    fn ask(&mut self, request: &str) -> std::result::Result<serde_json::Value, String> {
        let fault = |error: &dyn std::fmt::Display| format!("python3 has stopped: {error}");
        writeln!(self.requests, "{request}").map_err(|error| fault(&error))?;
        self.requests.flush().map_err(|error| fault(&error))?;
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(|error| fault(&error))?;
        serde_json::from_str(&line).map_err(|error| fault(&error))
    }

    /// Microseconds of each inference of a round.
    fn round(&mut self) -> std::result::Result<Vec<f64>, String> {
        let request = self.runs.to_string();
        let answer = self.ask(&request)?;
        let times = answer.as_array().map(|times| {
            times
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .collect::<Vec<f64>>()
        });
        times
            .filter(|times| !times.is_empty())
            .ok_or_else(|| "it gave no times".to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It waits for a request: there is nothing to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
