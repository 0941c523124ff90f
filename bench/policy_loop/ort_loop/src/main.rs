//! A policy at a fixed rate by ONNX Runtime:
//! `ort-loop LIBRARY MODEL SECONDS RATE_HZ default|no_spin|one_thread`. Prints one line of JSON, as
//! the other sides of `policy_loop.py` do.

use std::fmt::Display;
use std::time::{Duration, Instant};

use ort::session::Session;
use ort::value::Tensor;

const OBSERVATIONS: usize = 48;
const ACTIONS: usize = 12;
/// Ticks before the first one that counts.
const WARM_UP: usize = 100;

fn said(error: impl Display) -> String {
    error.to_string()
}

/// CPU time of all threads of this process, in nanoseconds.
fn cpu_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok());
    times.sum()
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, model, seconds, rate, mode] = &arguments[..] else { return Err("LIBRARY MODEL SECONDS RATE_HZ MODE".to_owned()) };
    let environment = ort::init_from(library).map_err(said)?.build().map_err(said)?;
    let mut builder = Session::builder(&environment).map_err(said)?;
    if mode != "default" {
        builder = builder.with_config_entry("session.intra_op.allow_spinning", "0").map_err(said)?;
    }
    if mode == "one_thread" {
        builder = builder.with_intra_threads(1).map_err(said)?;
    }
    let mut session = builder.commit_from_file(model).map_err(said)?;
    let (given, made) = (session.inputs()[0].name().to_owned(), session.outputs()[0].name().to_owned());
    let mut input = Tensor::from_array(([1, OBSERVATIONS], vec![0f32; OBSERVATIONS])).map_err(said)?;
    let output = Tensor::<f32>::new(session.allocator(), [1, ACTIONS]).map_err(said)?;
    let mut binding = session.create_binding().map_err(said)?;
    binding.bind_input(given, &input).map_err(said)?;
    binding.bind_output(made.clone(), output).map_err(said)?;
    let rate: f64 = rate.parse().map_err(said)?;
    let ticks = (seconds.parse::<f64>().map_err(said)? * rate) as usize;
    let period = Duration::from_secs_f64(1.0 / rate);
    let (mut taken, mut misses) = (Vec::with_capacity(ticks), 0);
    let (mut begin, mut cpu, mut sum) = (Instant::now(), None, 0.0);
    let mut tick = 0;
    while tick < WARM_UP + ticks {
        if cpu.is_none() && tick >= WARM_UP {
            (misses, cpu) = (0, Some(cpu_ns()));
        }
        std::thread::sleep(begin.saturating_duration_since(Instant::now()));
        for (index, number) in input.extract_tensor_mut().1.iter_mut().enumerate() {
            *number = ((tick * 7 + index * 13) % 101) as f32 / 50.0 - 1.0;
        }
        let outputs = session.run_binding(&binding).map_err(said)?;
        sum += outputs[made.as_str()].try_extract_tensor::<f32>().map_err(said)?.1[0];
        let late = begin.elapsed();
        if tick >= WARM_UP {
            taken.push(late.as_nanos() as u64);
        }
        // Periods that passed until the answer are misses, and get none.
        let passed = (late.as_nanos() / period.as_nanos()) as usize;
        misses += passed;
        tick += 1.max(passed);
        begin += period * 1.max(passed) as u32;
    }
    let cpu_us = (cpu_ns() - cpu.unwrap_or_default()) as f64 / 1e3 / ticks as f64;
    taken.sort_unstable();
    let at = |part: f64| taken[((taken.len() as f64 * part) as usize).min(taken.len() - 1)] as f64 / 1e3;
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(at);
    println!("{{\"ticks\": {ticks}, \"misses\": {misses}, \"p50_us\": {p50}, \"p99_us\": {p99}, \"p999_us\": {p999}, \"max_us\": {max}, \"cpu_us\": {cpu_us}, \"sum\": {sum}}}");
    Ok(())
}
