//! The work of `bench/python/overhead.py` directly in Rust: runs each once, then prints the seconds
//! of each line `NAME COUNT` that it reads.

use std::io::BufRead;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use tectum::{Device, Error, Result, Sample, WorkProgress};
use tectum_control::brain::Brain;
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body};
use tectum_spiking::genome::{Genome, GenomeOptions};
use tectum_spiking::{ConnectOptions, Simulation, SimulationOptions, Stimulus, connect};
use tectum_transformer::{Checkpoint, Decoder, GenerateOptions, Tokens, generate};

/// Seconds of `count` calls, the median of each call in nanoseconds.
fn ticks(brain: &mut dyn Brain, observation: &[f32], count: usize) -> Result<f64> {
    let mut action = vec![0.0];
    let mut taken = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        brain.tick(observation, &mut action)?;
        taken.push(start.elapsed().as_nanos() as f64);
    }
    taken.sort_by(f64::total_cmp);
    Ok(taken[count / 2] * 1e-9)
}

fn brain(name: &str, body: &str, device: &Device) -> Result<Box<dyn Brain>> {
    let text = format!("[body]\nname = \"{body}\"\n[brain]\nname = \"{name}\"\n");
    let scenario = Scenario::parse(&text, "direct", "direct")?;
    let body = build_body(&scenario)?;
    brain_recipe(&scenario, body.spec())?.build(device, &mut WorkProgress::ignore)
}

fn main() -> Result<()> {
    let own = tempfile::tempdir().map_err(|source| Error::io("temporary folder", source))?;
    let folder = own.path();
    Sample::find(&tectum_spiking::SAMPLES, "sample-genome")?
        .write(&folder.join("sample-genome.json"))?;
    Sample::find(&tectum_transformer::SAMPLES, "sample-decoder")?
        .write(&folder.join("sample-decoder"))?;
    let device = Device::cpu().threads(1).open()?;
    let mut lqr = brain("lqr", "pendulum", &device)?;
    let mut mppi = brain("mppi", "pendulum", &device)?;
    let genome = Genome::read(
        &folder.join("sample-genome.json"),
        &GenomeOptions::default(),
    )?;
    let stimulus = Stimulus::new(&genome, 0.1, 0)?;
    let connected = connect(
        &genome,
        ConnectOptions::default(),
        &mut WorkProgress::ignore,
    )?;
    let max_inputs = connected.network.neurons() as usize;
    let options = SimulationOptions {
        constant_inputs: connected.constant_inputs,
        max_inputs,
        ..SimulationOptions::default()
    };
    let mut network = Simulation::new(Arc::new(connected.network), &device, &options)?;
    let (path, prompt) = (folder.join("sample-decoder"), "the small cat");
    let mut decoder = Decoder::new(
        &Checkpoint::open(&path)?,
        &device,
        256,
        tectum::CacheFormats::F32,
        None,
    )?;
    let tokens = Tokens::read(&path, None)?;
    let mut seconds_of = |name: &str, count: usize| -> Result<f64> {
        let start = Instant::now();
        match name {
            "lqr" => return ticks(&mut *lqr, &[0.1, 0.2], count),
            "mppi" => return ticks(&mut *mppi, &[0.1, 0.2], count),
            "network" => drop(stimulus.run(&mut network, count as u32)?),
            "generate" => {
                decoder.truncate(0);
                let options = GenerateOptions {
                    max_new_tokens: count,
                    ..GenerateOptions::default()
                };
                generate(
                    &mut decoder,
                    Some(&tokens),
                    &tokens.encode(prompt)?,
                    &options,
                    |_| Ok(ControlFlow::Continue(())),
                )?;
            }
            _ => {
                return Err(Error::invalid(format!(
                    "standard input: {name}: must be lqr, mppi, network or generate"
                )));
            }
        }
        Ok(start.elapsed().as_secs_f64())
    };
    for name in ["lqr", "mppi", "network", "generate"] {
        println!("{name} {:e} s", seconds_of(name, 1)?);
    }
    println!("ready");
    for line in std::io::stdin()
        .lock()
        .lines()
        .map_while(std::result::Result::ok)
    {
        let (name, count) = line.split_once(' ').unwrap_or((&line, "1"));
        println!("{:e}", seconds_of(name, count.parse().unwrap_or(1))?);
    }
    Ok(())
}
