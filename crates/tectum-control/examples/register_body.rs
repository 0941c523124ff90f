//! A body of your own, registered as a word of scenarios, with a brain that needs no model:
//! `cargo run -p tectum-control --example register_body`.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use tectum::{Device, Result};
use tectum_control::body::{
    ActionChannel, Body, BodySpec, Descriptor, ObservationChannel, PlantSettings, Start, Step,
    register_body, task,
};
use tectum_control::run_folder;
use tectum_control::scenario::{Scenario, Section};

/// A heated room, a plant of first order: T' = (outside − T + gain·heater) / tau.
struct Room {
    spec: BodySpec,
    settings: RoomSettings,
    temperature_c: f64,
}

/// Its keys in a scenario.
#[derive(Debug, Clone, Serialize)]
struct RoomSettings {
    tau_s: f64,
    outside_c: f64,
}

impl PlantSettings for RoomSettings {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        Ok(Self {
            tau_s: section.positive("tau_s")?.unwrap_or(600.0),
            outside_c: section.within("outside_c", -40.0..=40.0)?.unwrap_or(5.0),
        })
    }

    fn make(&self, _: Start) -> Result<Box<dyn Body>> {
        let temperature = ObservationChannel::new("temperature", "C", -40.0..=60.0);
        let heater = ActionChannel::new("heater", "kW", 0.0..=2.0);
        // The safe action of this plant is a constant low power.
        let spec = BodySpec {
            name: "room".into(),
            dt_s: 10.0,
            observation: vec![temperature],
            action: vec![heater],
            safe_action: vec![0.75],
        };
        Ok(Box::new(Room {
            spec,
            settings: self.clone(),
            temperature_c: self.outside_c,
        }))
    }
}

impl Body for Room {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _seed: u64) {
        self.temperature_c = self.settings.outside_c;
    }

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.temperature_c as f32;
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let heater_kw = self.spec.action[0].applied(action[0]);
        let steady_c = self.settings.outside_c + 20.0 * f64::from(heater_kw.unwrap_or(0.75));
        self.temperature_c +=
            self.spec.dt_s * (steady_c - self.temperature_c) / self.settings.tau_s;
        Step {
            reward: -(self.temperature_c - 20.0).abs(),
            refused: heater_kw.is_none(),
            ..Step::default()
        }
    }
}

/// The task: 20 °C within 0.5 °C.
static ROOM: Descriptor =
    Descriptor::with_settings::<RoomSettings>("room", &[Start::Random], || {
        task::keep(0, 20.0, 0.5)
    });

fn main() -> Result<()> {
    register_body(&ROOM)?;
    // The brain `zero` gives the safe action at every tick.
    let text = "[body]\nname = \"room\"\ntau_s = 900\n[brain]\nname = \"zero\"\n[loop]\nseconds = 7200\nclock = \"sim\"\n";
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
