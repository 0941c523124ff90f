//! The public interface under random calls, valid and invalid, with many owners: results are
//! correct, mistakes give typed errors or the documented panic, and the device works afterwards.
//!
//! A sequence of calls is drawn from a seed over a world of builders, plans, executables, buffers,
//! streams, graphs and programs. A model of each predicts whether a call must be refused, and every
//! resulting word: its bits, or a number within bounds.
//!
//! `TECTUM_API_CALLS` is the number of calls on the CPU, default 20,000, a fiftieth as many on
//! software Vulkan; `TECTUM_SEED` is the first seed. `TECTUM_API_SEED` replays the sequence of one
//! seed and prints each call before it is made.

mod buffers;
mod caches;
mod chains;
mod conditions;
mod graphs;
mod images;
mod memory;
mod moves;
mod networks;
mod numbers;
mod operation;
mod panels;
mod plans;
mod products;
mod programs;
mod recognized;
mod recorded;
mod streams;
mod windows;
mod world;

use std::time::Instant;

use tectum::{Device, ErrorKind, PoolCaps};

use self::world::{LIVE_BYTES, Verdict, World, caught};
use crate::defects::works;

/// Steps of one sequence; most are several calls.
const STEPS: u64 = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn step(world: &mut World) -> Verdict {
    let builders = world.builders.len();
    let plan = world.below(builders);
    let (plans, runs) = (world.plans.len(), world.runs.len());
    match world.random.below(24) {
        _ if builders == 0 => world.begin_plan(),
        0 if builders < 3 => world.begin_plan(),
        1 if world.chance(3) => world.extreme_slot(plan),
        1 | 2 => return world.derive_view(plan),
        3..10 => return world.record(plan),
        10 => return world.finish(plan),
        11 if plans > 0 => {
            let place = world.below(plans);
            return world.compile(place);
        }
        12..17 if runs > 0 => {
            let place = world.below(runs);
            return world.operate(place);
        }
        17 | 18 => return world.use_buffers(),
        19 => return world.use_streams(),
        20 => return world.use_graphs(),
        21 if world.chance(4) => return world.use_programs(),
        21 if world.chance(3) => return world.recognized_program(),
        22 if world.chance(8) => return world.use_threads(),
        _ => return world.record(plan),
    }
    Ok(())
}

/// One sequence; the number of its calls.
fn sequence(device: &Device, seed: u64, shows: bool) -> u64 {
    let mut world = World::new(seed, device, shows);
    // A panic outside of a call comes from the model.
    let calls = caught(|| {
        (0..STEPS)
            .try_for_each(|_| step(&mut world))
            .and_then(|()| world.drain())
    });
    if let Err(fault) = calls.unwrap_or_else(|panic| Err(format!("the model panicked: {panic}"))) {
        panic!(
            "{device:?}, TECTUM_API_SEED={seed}, call {}: {fault}\n{}",
            world.calls,
            world.journal()
        );
    }
    works(device);
    world.calls
}

/// Runs sequences until this many calls are made.
fn soak(device: &Device, calls: u64) {
    device.pool().set_caps(PoolCaps {
        live_bytes: LIVE_BYTES,
        ..PoolCaps::default()
    });
    let start = Instant::now();
    let (mut made, mut seed) = (0, number("TECTUM_SEED").unwrap_or(0));
    match number("TECTUM_API_SEED") {
        Some(seed) => made = sequence(device, seed, true),
        None => {
            while made < calls {
                made += sequence(device, seed, false);
                seed += 1;
            }
        }
    }
    device.pool().set_caps(PoolCaps::default());
    println!(
        "{made} calls on {device:?} in {:.1} s, {:.0} a second",
        start.elapsed().as_secs_f64(),
        made as f64 / start.elapsed().as_secs_f64()
    );
}

fn calls() -> u64 {
    number("TECTUM_API_CALLS").unwrap_or(20_000)
}

#[test]
fn api_fuzz_on_the_cpu() {
    soak(&Device::open("cpu").expect("always there"), calls());
}

#[test]
fn api_fuzz_on_software_vulkan() {
    match Device::open("vulkan:0") {
        Ok(device) => soak(&device, calls() / 50),
        Err(error) if error.kind() == ErrorKind::Unsupported => println!("skipped: no vulkan:0"),
        Err(error) => panic!("{error}"),
    }
}
