//! Prediction, error and modulation.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;

use super::super::layout::*;
use super::super::shape::REGIONS;
use super::Sense;
use super::{number, ramp};

pub fn native(_: &NativeCall<'_>, arguments: Sense<Slices<'_>>) {
    let Sense {
        live,
        descriptor,
        memory,
        control,
        sensors,
        motors,
        content,
        channels,
    } = arguments;
    control.fill(0.0);
    let now: Vec<f32> = (0..sensors)
        .map(|sensor| number(live, LIVE_SENSORS + sensor).clamp(-1.0, 1.0))
        .collect();
    let errors: Vec<f32> = now
        .iter()
        .enumerate()
        .map(|(sensor, now)| sense_one(memory, descriptor, content, sensor, *now))
        .collect();

    let weight = 1.5 - 0.5 * (sensors.min(REGIONS) as f32 / 50.0).min(1.0);
    let mean_error = weight * errors.iter().sum::<f32>() / sensors as f32;
    control[CONTROL_ERROR] = mean_error;
    modulate(
        live,
        memory,
        control,
        mean_error,
        now.iter().any(|now| *now != 0.0),
    );

    control[CONTROL_PULL] = memory[MEMORY_PULL];
    control[CONTROL_STRATEGIC_WEIGHT] = memory[MEMORY_STRATEGIC_WEIGHT];
    control[CONTROL_STRATEGIC_DRIVE] = memory[MEMORY_STRATEGIC_DRIVE];

    let echo = number(live, LIVE_ECHO);
    let moved = &memory[MEMORY_MOTORS..][..motors];
    control[CONTROL_ECHO_FORWARD] = 0.3 * echo * moved[0];
    control[CONTROL_ECHO_TURN] = 0.3 * echo * moved.get(1).copied().unwrap_or(0.0);
    control[CONTROL_ECHO_MEAN] =
        0.2 * echo * moved.iter().map(|motor| motor.abs()).sum::<f32>() / motors as f32;

    // The effect of the error in each region, and the sensors' pattern over the content channels.
    let rate = 0.1 * (1.0 + 4.0 * memory[MEMORY_ERROR]).min(3.0) * number(live, LIVE_ERROR_DRIVE);
    for region in 0..REGIONS.min(sensors) {
        let (sum, count) = strided(&errors, region, REGIONS);
        let error = (sum / count).min(1.0);
        let part = ramp(error, 0.09, 0.11);
        control[CONTROL_NEAR + region] = rate * part * 2.0 * error;
        control[CONTROL_FAR + region] = -rate * (1.0 - part) * 0.1 * (1.0 - error);
        control[CONTROL_REGION_ERROR + region] = error;
    }
    for channel in 0..content.min(sensors) {
        let (sum, count) = strided(&now, channel, content);
        control[CONTROL_PATTERN + channel] = sum / count;
    }
    control[CONTROL_STRATEGIC..][..channels / 4]
        .copy_from_slice(&memory[MEMORY_STRATEGIC..][..channels / 4]);
}

/// The error of a sensor; also updates its memory.
fn sense_one(
    memory: &mut [f32],
    descriptor: &[f32],
    content: usize,
    sensor: usize,
    now: f32,
) -> f32 {
    let history = |memory: &[f32], age: usize| memory[MEMORY_HISTORY + age * MAX_SENSORS + sensor];
    let [last, second, third] = [0, 1, 2].map(|age| history(memory, age));
    let (slope, bend) = (last - second, last - 2.0 * second + third);
    let trust = memory[MEMORY_TRUST + sensor];
    let recalled = descriptor[sensor % REGIONS * content + sensor % content];
    let predicted = 0.3 * (last + 0.5 * slope + 0.3 * bend)
        + trust * recalled / (1.0 + slope.abs())
        + 0.1 * memory[MEMORY_SIZE];
    let error = (now - predicted.clamp(-1.0, 1.0)).abs();
    for (age, value) in [now, last, second].into_iter().enumerate() {
        memory[MEMORY_HISTORY + age * MAX_SENSORS + sensor] = value;
    }
    memory[MEMORY_TRUST + sensor] = 0.9 * trust + 0.1 / (1.0 + 5.0 * error);
    error
}

fn modulate(
    live: &[u32],
    memory: &mut [f32],
    control: &mut [f32],
    mean_error: f32,
    is_active: bool,
) {
    let error_before = memory[MEMORY_ERROR];
    let momentum = number(live, LIVE_MOMENTUM);
    let error = momentum * error_before + (1.0 - momentum) * mean_error;
    let confidence = 0.9 * memory[MEMORY_CONFIDENCE] + 0.1 / (1.0 + 5.0 * mean_error);
    let information = 0.95 * memory[MEMORY_INFORMATION]
        + 0.05 * memory[MEMORY_SIZE] * (1.0 + memory[MEMORY_VARIANCE]);
    let idle = if is_active {
        0.0
    } else {
        memory[MEMORY_IDLE] + 1.0
    };
    let norm = (information / 1.5).clamp(0.0, 1.0);
    let drive = if idle > 100.0 {
        0.95
    } else {
        0.5 * (norm + confidence)
    };
    let fall = error_before - error;
    let plateau = (memory[MEMORY_PLATEAU] + 1.0) * (1.0 - ramp(fall, 0.0, 0.01));
    let novelty = (1.0 - memory[MEMORY_SIMILARITY] + number(live, LIVE_WANDER)).clamp(0.0, 1.0);
    let eager = ((1.0 - norm) * (0.5 + 0.5 * novelty) + (plateau / 200.0).min(0.5) + 0.3).min(1.0);
    let strength = 0.1 + 0.7 * (1.0 - drive);
    let amplification = 1.0 + 0.5 * (1.0 - confidence);
    let boost = (1.0 + 4.0 * error).min(3.0);
    let reward = number(live, LIVE_REWARD).clamp(-1.0, 1.0);
    memory[MEMORY_ERROR] = error;
    memory[MEMORY_CONFIDENCE] = confidence;
    memory[MEMORY_INFORMATION] = information;
    memory[MEMORY_IDLE] = idle.min(1000.0);
    memory[MEMORY_PLATEAU] = plateau.min(1000.0);
    control[CONTROL_DRIVE] = drive;
    control[CONTROL_EXPLORE] =
        (eager * (0.8 + 0.7 * ramp(-fall, -0.01, 0.01)) + 0.2 * (1.0 - confidence)).min(1.0);
    control[CONTROL_INTENSITY] = number(live, LIVE_IMPRINT)
        * (0.5 + 0.5 * reward)
        * strength
        * amplification
        * (0.1 + 0.9 * mean_error.min(1.0));
    control[CONTROL_ERROR_EVERYWHERE] = 0.05 * 0.1 * boost * number(live, LIVE_ERROR_DRIVE) * error;
    control[CONTROL_STEP] = (number(live, LIVE_AGE) * boost).min(0.3);
    control[CONTROL_RETENTION] = number(live, LIVE_RETENTION) * (0.999 - 0.01 * norm);
    control[CONTROL_NOVELTY] = novelty;
}

/// The sum and the count of every `step`-th value, starting at `first`.
fn strided(values: &[f32], first: usize, step: usize) -> (f32, f32) {
    values
        .iter()
        .skip(first)
        .step_by(step)
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0))
}
