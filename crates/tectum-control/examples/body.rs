//! A body of your own, a heated room under a thermostat:
//! `cargo run -p tectum-control --example body`.

use tectum::{Device, Result};
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
use tectum_control::brain::Stateless;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings};

/// T' = (outside + gain · heater − T) / tau with 5 °C outside, 20 °C/kW and 600 s.
struct Room {
    spec: BodySpec,
    temperature_c: f64,
}

impl Body for Room {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _seed: u64) {
        self.temperature_c = 5.0;
    }

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.temperature_c as f32;
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let heater_kw = self.spec.action[0].applied(action[0]);
        self.temperature_c += self.spec.dt_s
            * (5.0 + 20.0 * f64::from(heater_kw.unwrap_or(0.75)) - self.temperature_c)
            / 600.0;
        Step {
            reward: -(self.temperature_c - 20.0).abs(),
            refused: heater_kw.is_none(),
            ..Step::default()
        }
    }
}

fn main() -> Result<()> {
    let observation = vec![ObservationChannel::new("temperature", "C", -40.0..=60.0)];
    let action = vec![ActionChannel::new("heater", "kW", 0.0..=2.0)];
    let spec = BodySpec {
        name: "room".into(),
        dt_s: 10.0,
        observation,
        action,
        safe_action: vec![0.75],
    };
    let thermostat = Stateless::new("thermostat", |observation, action| {
        action[0] = if observation[0] < 20.0 { 2.0 } else { 0.0 }
    });
    let settings = LoopSettings {
        seconds: 7200.0,
        ..LoopSettings::default()
    };
    let room = Room {
        spec,
        temperature_c: 5.0,
    };
    let outcome = ClosedLoop::new(
        Box::new(room),
        Box::new(thermostat),
        &settings,
        &Device::open("cpu")?,
    )?
    .simulate()
    .into_result()?;
    let error_c = -outcome.metrics.total_reward / outcome.metrics.ticks as f64;
    println!(
        "{} ticks; {error_c:.2} °C from 20 °C on average",
        outcome.metrics.ticks
    );
    assert!(error_c < 1.0);
    Ok(())
}
