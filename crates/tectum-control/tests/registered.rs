//! A body and a brain of another crate: as words of scenarios once they are registered, and under
//! their own names in every file of a run.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Once;

use serde::Serialize;
use serde_json::{Value, json};
use tectum::snapshot::{Array, Snapshot};
use tectum::{Device, Result, RunStats};
use tectum_control::body::{
    ActionChannel, Body, BodySpec, Descriptor, ExactState, ObservationChannel, PlantSettings,
    Start, Step, register_body, task,
};
use tectum_control::brain::{
    Brain, BrainContext, BrainSettings, Recipe, Stateless, register_brain,
};
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Outcome};
use tectum_control::run_folder::{
    RECEIPT_FILE, RUN_METADATA, RunFolder, RunSummary, SCENARIO_FILE, SNAPSHOT_FILE, SUMMARY_FILE,
    TRACE_FILE, read_scenario, repeat,
};
use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};
use tectum_control::scenario::{Scenario, Section};

const DT_S: f64 = 0.05;
const TICKS: u64 = 80;
const TEXT: &str = "[body]\nname = \"my_plant\"\ntau_s = 0.4\n[brain]\nname = \"pid\"\nkp = 2.5\nki = 1.5\n[loop]\nseconds = 4\nseed = 7\nclock = \"sim\"\n";

/// y' = y + dt (u − y) / tau, from y = 0.01 seed.
struct Plant {
    spec: BodySpec,
    tau_s: f64,
    y: f64,
}

impl Plant {
    fn new(name: &str, tau_s: f64) -> Self {
        let y = ObservationChannel::new("y", "m", -2.0..=2.0).scaled(1.0);
        let u = ActionChannel::new("u", "m", -3.0..=3.0);
        Self {
            spec: BodySpec {
                name: name.into(),
                dt_s: DT_S,
                observation: vec![y],
                action: vec![u],
                safe_action: vec![0.0],
            },
            tau_s,
            y: 0.0,
        }
    }
}

impl Body for Plant {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        self.y = 0.01 * seed as f64;
    }

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.y as f32;
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let applied = self.spec.action[0].applied(action[0]);
        self.y += DT_S * (f64::from(applied.unwrap_or(0.0)) - self.y) / self.tau_s;
        Step {
            reward: -(self.y - 1.0).abs(),
            refused: applied.is_none(),
            ..Step::default()
        }
    }

    fn exact_state(&self) -> Option<&dyn ExactState> {
        Some(self)
    }

    fn exact_state_mut(&mut self) -> Option<&mut dyn ExactState> {
        Some(self)
    }
}

impl ExactState for Plant {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.push(self.y);
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        self.y = state[0];
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct MyPlant {
    tau_s: f64,
}

impl PlantSettings for MyPlant {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        Ok(Self {
            tau_s: section.positive("tau_s")?.unwrap_or(0.5),
        })
    }

    fn make(&self, _: Start) -> Result<Box<dyn Body>> {
        Ok(Box::new(Plant::new("my_plant", self.tau_s)))
    }
}

static MY_PLANT: Descriptor =
    Descriptor::with_settings::<MyPlant>("my_plant", &[Start::Random], || task::keep(0, 1.0, 0.05));
static MISNAMED: Descriptor = Descriptor::new(
    "misnamed",
    &[Start::Random],
    |_| Ok(Box::new(Plant::new("my_plant", 1.0))),
    || task::keep(0, 1.0, 0.05),
);
static STARTLESS: Descriptor = Descriptor::new(
    "startless",
    &[],
    |_| Ok(Box::new(Plant::new("startless", 1.0))),
    || task::keep(0, 1.0, 0.05),
);

/// To y = 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct PidSettings {
    kp: f64,
    ki: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kd: Option<f64>,
}

impl BrainSettings for PidSettings {
    fn standard() -> Option<Self> {
        Some(Self {
            kp: 1.0,
            ki: 0.0,
            kd: None,
        })
    }

    fn read(section: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        let kp = section.non_negative("kp")?.unwrap_or(1.0);
        Ok(Self {
            kp,
            ki: section.non_negative("ki")?.unwrap_or(0.0),
            kd: section.non_negative("kd")?,
        })
    }

    fn recipe(&self, _: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(self.pid("pid"))))
    }
}

impl PidSettings {
    fn pid(&self, name: &'static str) -> Pid {
        Pid {
            name,
            gains: [self.kp, self.ki, self.kd.unwrap_or(0.0)],
            state: [0.0; 2],
        }
    }
}

struct Pid {
    name: &'static str,
    gains: [f64; 3],
    /// Integral of the error, and the error before.
    state: [f64; 2],
}

impl Brain for Pid {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let error = 1.0 - f64::from(observation[0]);
        let rate = (error - self.state[1]) / DT_S;
        self.state = [self.state[0] + error * DT_S, error];
        action[0] =
            (self.gains[0] * error + self.gains[1] * self.state[0] + self.gains[2] * rate) as f32;
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert("state", Array::F64(self.state.to_vec()));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.state.copy_from_slice(snapshot.f64("state", 2)?);
        Ok(())
    }
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register_body(&MY_PLANT).expect("a new name");
        register_body(&MISNAMED).expect("a new name");
        register_brain::<PidSettings>("pid").expect("a new name");
    });
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        register();
        let path =
            std::env::temp_dir().join(format!("tectum-registered-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn cpu() -> Device {
    Device::open("cpu").expect("always there")
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "s.toml", "s").unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn open(scenario: &Scenario) -> ClosedLoop {
    let body = build_body(scenario).expect("registered");
    let recipe = brain_recipe(scenario, body.spec()).expect("registered");
    build_loop(
        scenario,
        body,
        recipe,
        &cpu(),
        &mut tectum::WorkProgress::ignore,
    )
    .expect("registered")
}

/// Runs into a folder, to the end or for some ticks.
fn run(
    scenario: &Scenario,
    closed_loop: &mut ClosedLoop,
    runs: &Path,
    ticks: Option<u64>,
) -> (Outcome, PathBuf) {
    let mut folder = RunFolder::create(runs, scenario, closed_loop).expect("its own names");
    let outcome = closed_loop.run(
        &mut SimClock::new(),
        &mut folder,
        &mut |progress| match ticks {
            Some(ticks) if progress.tick == ticks => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
    );
    let summary = RunSummary::new(scenario, &outcome, None, 0, folder.complete_path());
    folder.write(&outcome, &summary).expect("writable");
    (outcome, folder.complete().expect("its own number"))
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("there")).expect("JSON")
}

/// Asserts the names and settings in each file of a folder.
fn check_names(
    folder: &Path,
    body: &str,
    body_settings: &Value,
    brain: &str,
    brain_settings: &Value,
) {
    let expected = json!({ "body": body, "body_settings": body_settings, "brain": brain, "brain_settings": brain_settings });
    assert_eq!(json_of(&folder.join(RECEIPT_FILE))["workload"], expected);
    let summary = json_of(&folder.join(SUMMARY_FILE));
    expected
        .as_object()
        .into_iter()
        .flatten()
        .for_each(|(key, value)| assert_eq!(summary[key], *value, "{key}"));
    assert_eq!(summary["clock"], "sim");
    let text = std::fs::read_to_string(folder.join(SCENARIO_FILE)).expect("there");
    let table: toml::Table = text.parse().expect("TOML");
    for (part, name, settings) in [
        ("body", body, body_settings),
        ("brain", brain, brain_settings),
    ] {
        let mut written = serde_json::to_value(&table[part]).expect("plain");
        assert_eq!(written["name"], name);
        written.as_object_mut().expect("a table").remove("name");
        assert_eq!(written, *settings, "{text}");
    }
    let bytes = std::fs::read(folder.join(TRACE_FILE)).expect("there");
    let index = mcap::Summary::read(&bytes)
        .expect("an MCAP file")
        .expect("its summary")
        .metadata_indexes;
    let metadata = mcap::read::metadata(&bytes, &index[0]).expect("its metadata");
    assert_eq!((metadata.name.as_str(), index.len()), (RUN_METADATA, 1));
    let found = ["body", "brain", "scenario"].map(|key| metadata.metadata[key].as_str());
    assert_eq!(found, [body, brain, &text]);
}

#[test]
fn registered_names_run_from_a_scenario_and_are_in_every_file() {
    let scratch = Scratch::new("files");
    let scenario = parse(TEXT);
    let again = scenario.to_toml().expect("plain numbers");
    assert_eq!(parse(&again), scenario, "{again}");
    let (outcome, folder) = run(&scenario, &mut open(&scenario), &scratch.0, None);
    check_names(
        &folder,
        "my_plant",
        &json!({ "tau_s": 0.4 }),
        "pid",
        &json!({ "kp": 2.5, "ki": 1.5 }),
    );
    assert_eq!(read_scenario(&folder).expect("registered"), scenario);
    let task = outcome.task.expect("the descriptor's");
    assert!(
        (outcome.metrics.ticks, task.measure.name.as_ref()) == (TICKS, "error")
            && task.success_fraction > 0.0,
        "{task:?}"
    );
    let repeated =
        repeat(&folder, None, &mut tectum::WorkProgress::ignore).expect("nothing prevents it");
    assert_eq!(
        (repeated.ticks, repeated.expected.as_str()),
        (TICKS, repeated.found.as_str())
    );
    assert_eq!(
        Some(repeated.found),
        outcome.receipt.trace.map(|trace| trace.to_string())
    );
}

#[test]
fn a_resumed_run_has_the_trace_of_the_uninterrupted_one() {
    let scratch = Scratch::new("resumed");
    let scenario = parse(TEXT);
    let mut first = open(&scenario);
    let (_, folder) = run(&scenario, &mut first, &scratch.0, Some(30));
    let (uninterrupted, _) = run(&scenario, &mut first, &scratch.0, None);

    let scenario = read_scenario(&folder).expect("registered");
    let mut resumed = open(&scenario);
    assert_eq!(
        resumed
            .restore(&Snapshot::load(&folder.join(SNAPSHOT_FILE)).expect("there"))
            .expect("its own"),
        30
    );
    let (resumed, folder) = run(&scenario, &mut resumed, &scratch.0, None);
    assert!(resumed.receipt.trace.is_some() && resumed.metrics.ticks == TICKS);
    assert_eq!(resumed.receipt.trace, uninterrupted.receipt.trace);
    assert_eq!(
        resumed.metrics.total_reward,
        uninterrupted.metrics.total_reward
    );
    check_names(
        &folder,
        "my_plant",
        &json!({ "tau_s": 0.4 }),
        "pid",
        &json!({ "kp": 2.5, "ki": 1.5 }),
    );
}

/// A loop of the parts themselves, whose names are not registered.
fn own_loop() -> (ClosedLoop, MyPlant, PidSettings) {
    let (plant, pid) = (
        MyPlant { tau_s: 0.3 },
        PidSettings {
            kp: 3.0,
            ki: 0.0,
            kd: Some(0.01),
        },
    );
    let settings = LoopSettings {
        seconds: 1.0,
        ..LoopSettings::default()
    };
    let body = Box::new(Plant::new("own_plant", plant.tau_s));
    (
        ClosedLoop::new(body, Box::new(pid.pid("own_pid")), &settings, &cpu()).expect("cpu"),
        plant,
        pid,
    )
}

#[test]
fn an_unregistered_loop_is_recorded_under_its_names_and_cannot_be_repeated() {
    let scratch = Scratch::new("described");
    let (mut closed_loop, plant, pid) = own_loop();
    let scenario = Scenario::describe("tuning", &closed_loop, &plant, &pid).expect("plain numbers");
    let (_, folder) = run(&scenario, &mut closed_loop, &scratch.0, None);
    check_names(
        &folder,
        "own_plant",
        &json!({ "tau_s": 0.3 }),
        "own_pid",
        &json!({ "kp": 3.0, "ki": 0.0, "kd": 0.01 }),
    );

    let reason = "body \"own_plant\" is not built in and not registered in this process; built in: rig, pendulum, cart_pole, acrobot, seeker; \
                  registered: my_plant, misnamed";
    let of_file = format!("{}:4: {reason}", folder.join(SCENARIO_FILE).display());
    assert_eq!(
        read_scenario(&folder)
            .expect_err("unregistered")
            .to_string(),
        of_file
    );
    assert_eq!(
        repeat(&folder, None, &mut tectum::WorkProgress::ignore)
            .expect_err("unregistered")
            .to_string(),
        of_file
    );
    assert_eq!(
        build_body(&scenario)
            .err()
            .expect("unregistered")
            .to_string(),
        reason
    );
    let reason = "brain \"own_pid\" is not built in and not registered in this process; built in: mppi, lqr, mpc, adaptive, zero, safe, field, genome, policy; registered: pid";
    assert_eq!(
        brain_recipe(&scenario, closed_loop.body_spec())
            .err()
            .expect("unregistered")
            .to_string(),
        reason
    );
    let brain = std::fs::read_to_string(folder.join(SCENARIO_FILE))
        .expect("there")
        .replace("own_plant", "my_plant");
    std::fs::write(folder.join(SCENARIO_FILE), &brain).expect("writable");
    let line = 1 + brain
        .lines()
        .position(|line| line.contains("own_pid"))
        .expect("the brain's name");
    let error = read_scenario(&folder)
        .expect_err("unregistered")
        .to_string();
    assert_eq!(
        error,
        format!("{}:{line}: {reason}", folder.join(SCENARIO_FILE).display())
    );
}

#[test]
fn a_folder_is_never_recorded_under_other_names() {
    let scratch = Scratch::new("refused");
    let (mut closed_loop, ..) = own_loop();
    let refused = RunFolder::create(&scratch.0, &parse(TEXT), &mut closed_loop)
        .err()
        .expect("refused");
    let expected = "run folder: the scenario has brain \"pid\" on body \"my_plant\", the loop runs brain \"own_pid\" on body \"own_plant\"";
    assert_eq!(refused.to_string(), expected);
    assert!(!scratch.0.exists());

    let settings = LoopSettings::default();
    let mut built_in = ClosedLoop::new(
        Box::new(Plant::new("own_plant", 1.0)),
        Box::new(Stateless::new("zero", |_, action| action.fill(0.0))),
        &settings,
        &cpu(),
    )
    .expect("cpu");
    let scenario = Scenario::describe("baseline", &built_in, &(), &()).expect("no settings");
    assert_eq!(
        (scenario.body.name.as_str(), scenario.brain.name()),
        ("own_plant", "zero")
    );
    RunFolder::create(&scratch.0, &scenario, &mut built_in).expect("its own names");
    let stated = Scenario::describe(
        "baseline",
        &built_in,
        &(),
        &PidSettings {
            kp: 1.0,
            ki: 0.0,
            kd: None,
        },
    )
    .expect_err("zero has no settings");
    assert_eq!(
        stated.to_string(),
        "describe: brain \"zero\" is built in; the scenario that it is built from states its settings"
    );
}

#[test]
fn mistakes_of_registered_names_are_reported_with_line() {
    register();
    let cases = [
        (
            "kp = 2.5",
            "kp = -1",
            "s.toml:6: kp is -1, needs a number, 0 or above",
        ),
        (
            "kp = 2.5",
            "gain = 1",
            "s.toml:6: unknown key \"gain\"; known: name, kp, ki, kd",
        ),
        (
            "tau_s = 0.4",
            "tau = 0.4",
            "s.toml:3: unknown key \"tau\"; known: name, start, disturbances, tau_s",
        ),
        (
            "tau_s = 0.4",
            "start = \"flying\"",
            "s.toml:3: start \"flying\" is unknown; known: hanging, random",
        ),
        (
            "\"pid\"",
            "\"pdi\"",
            "s.toml:5: brain \"pdi\" is unknown, perhaps \"pid\"; known: mppi, lqr, mpc, adaptive, zero, safe, field, genome, policy, pid",
        ),
        (
            "\"pid\"",
            "\"lqr\"",
            "s.toml:6: unknown key \"kp\"; known: name",
        ),
        (
            "name = \"my_plant\"\ntau_s = 0.4",
            "name = \"misnamed\"\n",
            "s.toml:2: body \"misnamed\": its specification has the name \"my_plant\"",
        ),
        (
            "tau_s = 0.4",
            "[body.disturbances]",
            "s.toml:2: body \"my_plant\" has no disturbances; known: rig",
        ),
    ];
    for (from, to, expected) in cases {
        let error = Scenario::parse(&TEXT.replace(from, to), "s.toml", "s").expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
    let twice = [
        (
            register_body(&MY_PLANT),
            "register body \"my_plant\": the name is already registered",
        ),
        (
            register_body(&tectum_control::body::pendulum::DESCRIPTOR),
            "register body \"pendulum\": the name is built in",
        ),
        (
            register_body(&STARTLESS),
            "register body \"startless\": it has no start",
        ),
        (
            register_brain::<PidSettings>("pid"),
            "register brain \"pid\": the name is already registered",
        ),
        (
            register_brain::<PidSettings>("mppi"),
            "register brain \"mppi\": the name is built in",
        ),
        (
            register_brain::<PidSettings>("p i d"),
            "register brain \"p i d\": a name is made of letters, digits and _",
        ),
    ];
    for (result, expected) in twice {
        assert_eq!(result.expect_err(expected).to_string(), expected);
    }
}

#[test]
fn options_of_the_command_apply_to_registered_names_too() {
    register();
    let mut scenario = parse("[body]\nname = \"my_plant\"\n[brain]\nname = \"zero\"\n");
    scenario.set_brain("pid").expect("registered");
    assert_eq!(
        scenario
            .to_toml()
            .expect("plain numbers")
            .matches("kp = 1.0")
            .count(),
        1
    );
    assert_eq!(
        scenario
            .brain
            .set_data("rig.csv")
            .expect_err("no twin")
            .to_string(),
        "data rig.csv: brain \"pid\" learns nothing from it"
    );
    scenario.set_body("pendulum").expect("built in");
    assert_eq!(
        (scenario.body.name.as_str(), scenario.brain.name()),
        ("pendulum", "pid")
    );
    // Controllers need settings for the body.
    let lqr = parse("[body]\nname = \"my_plant\"\n[brain]\nname = \"lqr\"\n");
    let error = brain_recipe(&lqr, build_body(&lqr).expect("registered").spec())
        .err()
        .expect("no weights")
        .to_string();
    assert_eq!(
        error,
        "lqr and mpc have no weights for body \"my_plant\"; known: rig, pendulum, cart_pole"
    );
}
