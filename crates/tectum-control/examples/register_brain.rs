//! A brain of your own on a built-in body, registered as a word of scenarios:
//! `cargo run -p tectum-control --example register_brain`.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use tectum::snapshot::Snapshot;
use tectum::{Device, Result, RunStats};
use tectum_control::body::BodySpec;
use tectum_control::brain::{Brain, BrainContext, BrainSettings, Recipe, register_brain};
use tectum_control::run_folder;
use tectum_control::scenario::{Scenario, Section};

/// A PID controller of the pendulum's angle, which brings the energy to that of the upright pole
/// elsewhere. The settings are also the brain: its whole state is the integral.
#[derive(Debug, Clone, Serialize)]
struct Pid {
    kp: f64,
    ki: f64,
    kd: f64,
    #[serde(skip)]
    integral: f64,
}

impl BrainSettings for Pid {
    fn standard() -> Option<Self> {
        Some(Self {
            kp: 15.0,
            ki: 0.0,
            kd: 3.0,
            integral: 0.0,
        })
    }

    fn read(section: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        let mut gain = |key, default| Ok(section.non_negative(key)?.unwrap_or(default));
        Ok(Self {
            kp: gain("kp", 15.0)?,
            ki: gain("ki", 0.0)?,
            kd: gain("kd", 3.0)?,
            integral: 0.0,
        })
    }

    fn recipe(&self, _: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(self.clone())))
    }
}

impl Brain for Pid {
    fn name(&self) -> &'static str {
        "pid"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let (angle_rad, speed_rad_per_s) = (f64::from(observation[0]), f64::from(observation[1]));
        let is_near = angle_rad.abs() < 0.5;
        self.integral = if is_near {
            self.integral + 0.05 * angle_rad
        } else {
            0.0
        };
        let balance = -self.kp * angle_rad - self.ki * self.integral - self.kd * speed_rad_per_s;
        // Of a pole of 1 kg and 1 m, with 10 m/s², relative to the upright pole at rest.
        let energy_j = speed_rad_per_s.powi(2) / 6.0 + 5.0 * (angle_rad.cos() - 1.0);
        action[0] = if is_near {
            balance
        } else {
            -2.0 * (speed_rad_per_s * energy_j).signum()
        } as f32;
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert(
            "integral",
            tectum::snapshot::Array::F64(vec![self.integral]),
        );
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.integral = snapshot.f64("integral", 1)?[0];
        Ok(())
    }
}

fn main() -> Result<()> {
    register_brain::<Pid>("pid")?;
    let text = "[body]\nname = \"pendulum\"\n[brain]\nname = \"pid\"\nki = 0.1\n[loop]\nseconds = 10\nclock = \"sim\"\n";
    let scenario = Scenario::parse(text, "example", "example")?;
    let summary = run_folder::run(
        &scenario,
        Path::new("runs"),
        &Device::open("cpu")?,
        &mut |_| ControlFlow::Continue(()),
    )?;
    println!(
        "{} on {}: return {:.1} in {} ticks; {}",
        summary.brain, summary.body, summary.total_reward, summary.ticks, summary.run_folder
    );
    Ok(())
}
