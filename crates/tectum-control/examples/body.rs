//! A body of your own, registered as a word of scenarios, with a brain that needs no model: `cargo run -p tectum-control --example body`.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use tectum::{Device, Result};
use tectum_control::body::{ActionChannel, Body, BodySpec, ChannelKind, Descriptor, ObservationChannel, PlantSettings, Start, Step, register_body, task};
use tectum_control::clock::SimClock;
use tectum_control::run_folder::{RunFolder, RunSummary};
use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};
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
        Ok(Self { tau_s: section.positive("tau_s")?.unwrap_or(600.0), outside_c: section.within("outside_c", -40.0..=40.0)?.unwrap_or(5.0) })
    }

    fn make(&self, _: Start) -> Result<Box<dyn Body>> {
        let temperature = ObservationChannel { name: "temperature".into(), unit: "C".into(), kind: ChannelKind::Linear, low: -40.0, high: 60.0, scale: 20.0 };
        let heater = ActionChannel { name: "heater".into(), unit: "kW".into(), low: 0.0, high: 2.0, discrete: false };
        // The safe action of this plant is a constant low power.
        let spec = BodySpec { name: "room".into(), dt_s: 10.0, observation: vec![temperature], action: vec![heater], safe_action: vec![0.75] };
        Ok(Box::new(Room { spec, settings: self.clone(), temperature_c: self.outside_c }))
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
        self.temperature_c += self.spec.dt_s * (steady_c - self.temperature_c) / self.settings.tau_s;
        Step { reward: -(self.temperature_c - 20.0).abs(), terminated: false, truncated: false, refused: heater_kw.is_none() }
    }
}

/// The task: 20 °C within 0.5 °C.
static ROOM: Descriptor = Descriptor::with_settings::<RoomSettings>("room", &[Start::Random], || task::keep(0, 20.0, 0.5));

fn main() -> Result<()> {
    register_body(&ROOM)?;
    // The brain `zero` gives the safe action at every tick.
    let text = "[body]\nname = \"room\"\ntau_s = 900\n[brain]\nname = \"zero\"\n[loop]\nseconds = 7200\nclock = \"sim\"\n";
    let scenario = Scenario::parse(text, "example", "example")?;
    let body = build_body(&scenario)?;
    let recipe = brain_recipe(&scenario, body.spec())?;
    let mut closed_loop = build_loop(&scenario, body, recipe, &Device::open("cpu")?, &mut tectum::WorkProgress::ignore)?;
    let mut folder = RunFolder::create(Path::new("runs"), &scenario, &mut closed_loop)?;
    let outcome = closed_loop.run(&mut SimClock::new(), &mut folder, &mut |_| ControlFlow::Continue(()));
    let summary = RunSummary::new(&scenario, &outcome, None, 0, folder.complete_path());
    folder.write(&outcome, &summary)?;
    let success = 100.0 * outcome.metrics.success_fraction();
    println!("{} on {}: return {:.1}, on target {success:.0} % of the time", summary.brain, summary.body, summary.total_reward);
    println!("{}", folder.complete()?.display());
    Ok(())
}
