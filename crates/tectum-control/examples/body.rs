//! A body of your own, a heated room, run by a brain that is built in: `cargo run -p tectum-control --example body`.

use std::ops::ControlFlow;

use tectum::{Device, Result};
use tectum_control::body::{ActionChannel, Body, BodySpec, ChannelKind, ObservationChannel, Step};
use tectum_control::brain::zero::Zero;
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Discard, LoopSettings};

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
        self.temperature_c += self.spec.dt_s * (5.0 + 20.0 * f64::from(heater_kw.unwrap_or(0.75)) - self.temperature_c) / 600.0;
        Step { reward: -(self.temperature_c - 20.0).abs(), terminated: false, truncated: false, refused: heater_kw.is_none() }
    }
}

fn main() -> Result<()> {
    let thermometer = ObservationChannel { name: "temperature".into(), unit: "C".into(), kind: ChannelKind::Linear, low: -40.0, high: 60.0, scale: 20.0 };
    let heater = ActionChannel { name: "heater".into(), unit: "kW".into(), low: 0.0, high: 2.0, discrete: false };
    let spec = BodySpec { name: "room".into(), dt_s: 10.0, observation: vec![thermometer], action: vec![heater], safe_action: vec![0.75] };
    // The brain `zero` gives the safe action at every tick: 0.75 kW, which ends at 20 °C.
    let brain = Zero::new(&spec.safe_action);
    let settings = LoopSettings { seconds: 7200.0, ..LoopSettings::default() };
    let mut closed_loop = ClosedLoop::new(Box::new(Room { spec, temperature_c: 5.0 }), Box::new(brain), &settings, &Device::open("cpu")?)?;
    let outcome = closed_loop.run(&mut SimClock::new(), &mut Discard, &mut |_| ControlFlow::Continue(()));
    let error_c = -outcome.metrics.total_reward / outcome.metrics.ticks as f64;
    println!("{} ticks of {}; {error_c:.2} °C from 20 °C on average", outcome.metrics.ticks, closed_loop.body_spec().name);
    assert!(error_c < 2.0);
    Ok(())
}
