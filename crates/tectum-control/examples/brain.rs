//! A brain of your own, which swings the built-in pendulum up and balances it: `cargo run -p tectum-control --example brain`.

use std::ops::ControlFlow;

use tectum::snapshot::Snapshot;
use tectum::{Device, Result, RunStats};
use tectum_control::body::pendulum::Pendulum;
use tectum_control::body::{Start, task};
use tectum_control::brain::Brain;
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Discard, LoopSettings};

/// Proportional-derivative control near the upright pole, the energy of the upright pole elsewhere. It has no state, so its snapshots are empty.
struct SwingUp;

impl Brain for SwingUp {
    fn name(&self) -> &'static str {
        "swing_up"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let (angle_rad, speed_rad_per_s) = (observation[0], observation[1]);
        // Of a pole of 1 kg and 1 m, with 10 m/s², relative to the upright pole at rest.
        let energy_j = speed_rad_per_s.powi(2) / 6.0 + 5.0 * (angle_rad.cos() - 1.0);
        let is_near = angle_rad.abs() < 0.5;
        action[0] = if is_near { -15.0 * angle_rad - 3.0 * speed_rad_per_s } else { -2.0 * (speed_rad_per_s * energy_j).signum() };
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let settings = LoopSettings { seconds: 10.0, ..LoopSettings::default() };
    let mut closed_loop = ClosedLoop::new(Box::new(Pendulum::new(Start::Hanging)), Box::new(SwingUp), &settings, &Device::open("cpu")?)?;
    closed_loop.set_task(task::keep(0, 0.0, 0.17));
    let outcome = closed_loop.run(&mut SimClock::new(), &mut Discard, &mut |_| ControlFlow::Continue(()));
    let success = outcome.metrics.success_fraction();
    println!("return {:.1}; within 0.17 rad of upright {:.0} % of the time", outcome.metrics.total_reward, 100.0 * success);
    assert!(success > 0.5);
    Ok(())
}
