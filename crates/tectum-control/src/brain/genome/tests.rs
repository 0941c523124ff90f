//! A genome in a scenario: its actions match values computed by hand, and are the same on every
//! device and after a resume.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::spec::Coding;
use super::*;
use crate::body::Body;
use crate::scenario::Scenario;
use crate::scenario::build::{build_body, build_brain};

/// A file that is deleted at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, genome: &Value) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-brain-{name}-{}.json", std::process::id()));
        std::fs::write(&path, genome.to_string()).expect("writable");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn area(group: &str, size: [u32; 3], destination: &str, rules: Value) -> Value {
    json!({
        "group_id": group, "block_boundaries": size, "mp_charge_accumulation": false, "psp_uniform_distribution": true,
        "cortical_mapping_dst": if destination.is_empty() { json!({}) } else { json!({ destination: rules }) },
    })
}

/// Each voxel of the eye reaches its counterpart in the arm.
fn reflex() -> Value {
    let rules = json!([["projector", [1, 1, 1], 1, false]]);
    json!({"version": "2.1", "blueprint": {
        "eye___": area("IPU", [1, 1, 9], "arm___", rules),
        "arm___": area("OPU", [1, 1, 9], "", json!([])),
    }})
}

/// An eye with two columns, a leaky middle that draws its firings and snoozes, and an arm of two
/// neurons a voxel.
fn dreamer() -> Value {
    let mut middle = area(
        "CUSTOM",
        [2, 1, 12],
        "arm___",
        json!([
            ["projector", [1, 1, 1], 5, false],
            ["0-0-0_to_all", [1, 1, 1], -2, false]
        ]),
    );
    middle["mp_charge_accumulation"] = json!(true);
    middle["firing_threshold"] = json!(2.5);
    middle["leak_coefficient"] = json!(0.25);
    middle["neuron_excitability"] = json!(0.75);
    middle["consecutive_fire_cnt_max"] = json!(2);
    middle["snooze_length"] = json!(3);
    let mut arm = area("OPU", [1, 2, 12], "", json!([]));
    arm["per_voxel_neuron_cnt"] = json!(2);
    arm["mp_charge_accumulation"] = json!(true);
    arm["firing_threshold"] = json!(2);
    arm["leak_coefficient"] = json!(0.5);
    arm["neuron_excitability"] = json!(0.9);
    json!({"version": "2.1", "blueprint": {
        "eye___": area("IPU", [2, 1, 12], "middle", json!([["projector", [1, 1, 1], 3, false], ["lateral_+z", [1, 1, 1], 1, false]])),
        "middle": middle,
        "arm___": arm,
    }})
}

const REFLEX: &str = "sensors = [{ channel = 0, area = \"eye___\" }]\nmotors = [{ channel = 0, area = \"arm___\", rest = 1.5 }]\n";
const DREAMER: &str = "bursts_per_tick = 3\nsensors = [{ channel = 0, area = \"eye___\", amount = 2 }, { channel = \"speed\", area = \"eye___\", x = 1, coding = \"fractional\" }]\n\
                       motors = [{ channel = 0, area = \"arm___\", y = 1 }]\n";

fn scenario(file: &File, wiring: &str) -> Scenario {
    let text = format!(
        "[body]\nname = \"pendulum\"\n[brain]\ngenome = {:?}\n{wiring}",
        file.0
    );
    Scenario::parse(&text, "test", "test").expect("correct")
}

fn brain(scenario: &Scenario, device: &Device) -> (Box<dyn Body>, Box<dyn Brain>) {
    let plant = build_body(scenario).expect("known");
    let brain = build_brain(
        scenario,
        plant.as_ref(),
        device,
        &mut tectum::WorkProgress::ignore,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    (plant, brain)
}

fn cpu() -> Device {
    Device::open("cpu").expect("always there")
}

/// Runs a brain on a body for some ticks; its actions.
fn run(plant: &mut dyn Body, brain: &mut dyn Brain, ticks: usize) -> Vec<f32> {
    let (mut observation, mut action) = ([0.0; 2], [0.0]);
    let tick = |_| {
        plant.observe(&mut observation);
        brain.tick(&observation, &mut action).expect("a tick");
        plant.step(&action);
        action[0]
    };
    (0..ticks).map(tick).collect()
}

#[test]
fn numbers_along_z_are_the_references_percentages() {
    let encoded = |coding: Coding, value: f64, depth: u32| {
        let mut voxels = Vec::new();
        coding.encode(value, depth, &mut |z| voxels.push(z));
        voxels
    };
    for (value, depth, voxel) in [
        (1.0, 10, 0),
        (0.75, 10, 2),
        (0.5, 10, 5),
        (0.25, 10, 7),
        (0.0, 10, 9),
        (0.5, 9, 4),
        (0.0, 2, 1),
    ] {
        assert_eq!(
            encoded(Coding::Linear, value, depth),
            [voxel],
            "{value} in {depth}"
        );
    }
    for (value, depth, voxels) in [
        (1.0, 4, &[0][..]),
        (0.75, 4, &[1, 2]),
        (0.3, 4, &[2]),
        (0.3, 6, &[2, 5]),
        (0.99, 4, &[1, 2, 3]),
        (0.0, 4, &[]),
        (0.1, 4, &[]),
    ] {
        assert_eq!(
            encoded(Coding::Fractional, value, depth),
            voxels,
            "{value} in {depth}"
        );
    }
    let decoded =
        |coding: Coding, depth: u32, firing: &[u32]| coding.decode(depth, |z| firing.contains(&z));
    for (firing, value) in [
        (&[][..], None),
        (&[0], Some(1.0)),
        (&[9], Some(1.0 - 0.9)),
        (&[2, 4], Some(0.7)),
        (&[0, 1, 5], Some(0.8)),
    ] {
        assert_eq!(decoded(Coding::Linear, 10, firing), value, "{firing:?}");
    }
    for (firing, value) in [
        (&[][..], None),
        (&[0], Some(1.0)),
        (&[1, 2], Some(0.75)),
        (&[0, 1], Some(1.0)),
        (&[3], Some(0.125)),
    ] {
        assert_eq!(decoded(Coding::Fractional, 4, firing), value, "{firing:?}");
    }
}

#[test]
fn a_reflex_moves_by_what_it_sees_one_tick_later_or_in_the_same() {
    let file = File::new("reflex", &reflex());
    let torque = |z: f32| -2.0 + 4.0 * (1.0 - z / 9.0);
    // Upright is half the range: ⌊0.5 · 9⌋ = 4. A quarter turn is a quarter or three: ⌊0.25 · 9⌋ =
    // 2, ⌊0.75 · 9⌋ = 6.
    let quarter = std::f32::consts::FRAC_PI_2;
    let seen = [0.0, quarter, -quarter, 9.0, -9.0, f32::NAN, 0.0];
    let voxels = [
        Some(4.0),
        Some(2.0),
        Some(6.0),
        Some(0.0),
        Some(8.0),
        None,
        Some(4.0),
    ];
    for (bursts, delay) in [(1, 1), (2, 0), (3, 7)] {
        let scenario = scenario(&file, &format!("bursts_per_tick = {bursts}\n{REFLEX}"));
        let (_, mut brain) = brain(&scenario, &cpu());
        for (tick, angle) in seen.into_iter().enumerate() {
            let mut action = [f32::NAN];
            brain.tick(&[angle, 0.0], &mut action).expect("a tick");
            let voxel = tick.checked_sub(delay).and_then(|tick| voxels[tick]);
            let expected = voxel.map_or(1.5, torque);
            assert!(
                (action[0] - expected).abs() < 1e-6,
                "{bursts} bursts, tick {tick}: {} for {expected}",
                action[0]
            );
        }
    }
}

#[test]
fn actions_are_the_same_on_every_device_and_after_a_resume() {
    let file = File::new("dreamer", &dreamer());
    let scenario = scenario(&file, DREAMER);
    let expected = {
        let (mut plant, mut brain) = brain(&scenario, &cpu());
        run(plant.as_mut(), brain.as_mut(), 80)
    };
    let mut kinds = expected.clone();
    kinds.sort_by(f32::total_cmp);
    kinds.dedup();
    assert!(kinds.len() > 4, "the run shows nothing: {kinds:?}");
    for id in ["cpu", "vulkan:0"] {
        let device = match Device::open(id) {
            Ok(device) => device,
            Err(error) => {
                eprintln!("skipped: {id}: {error}");
                continue;
            }
        };
        let (mut plant, mut first) = brain(&scenario, &device);
        assert_eq!(
            run(plant.as_mut(), first.as_mut(), 31),
            expected[..31],
            "{id}"
        );
        let bytes = first.snapshot().expect("a state").to_bytes();
        let state = Snapshot::parse(&bytes).expect("a state");
        let rebuild = first.rebuild().expect("it can be rebuilt");
        assert_eq!(
            run(plant.as_mut(), first.as_mut(), 49),
            expected[31..],
            "{id}"
        );
        for mut second in [
            brain(&scenario, &device).1,
            rebuild(&cpu()).expect("on the CPU"),
        ] {
            let (mut plant, mut ahead) = brain(&scenario, &cpu());
            run(plant.as_mut(), ahead.as_mut(), 31);
            second.restore(&state).expect("its own state");
            assert_eq!(
                run(plant.as_mut(), second.as_mut(), 49),
                expected[31..],
                "{id}, resumed"
            );
        }
    }
}

#[test]
fn a_tick_of_one_burst_is_one_upload_and_one_download() {
    let file = File::new("transfers", &reflex());
    match Device::open("vulkan:0") {
        Ok(device) => {
            let (_, mut brain) = brain(&scenario(&file, REFLEX), &device);
            let stats = brain.tick(&[0.0; 2], &mut [0.0]).expect("a tick");
            assert_eq!(
                (stats.transfers_up, stats.transfers_down, stats.submissions),
                (1, 1, 1)
            );
        }
        Err(error) => eprintln!("skipped: vulkan:0: {error}"),
    }
}

#[test]
fn a_state_of_another_genome_is_refused_and_unsupported_features_are_reported() {
    let file = File::new("told", &dreamer());
    let mut genome = dreamer();
    let mapping = genome["blueprint"]["middle"]["cortical_mapping_dst"]["arm___"][0]
        .as_array_mut()
        .expect("a list");
    mapping.resize(8, json!(0));
    mapping.push(json!(3));
    let other = File::new("told-other", &genome);
    let (_, first) = brain(&scenario(&file, DREAMER), &cpu());
    let reflex = File::new("told-reflex", &reflex());
    let (_, mut second) = brain(&scenario(&reflex, REFLEX), &cpu());
    assert!(second.restore(&first.snapshot().expect("a state")).is_err());
    let (_, third) = brain(&scenario(&other, DREAMER), &cpu());
    assert!(
        first.notes().is_empty() && third.notes().len() == 1 && third.notes()[0].contains("delay"),
        "{:?}",
        third.notes()
    );
}

#[test]
fn a_motor_that_never_fires_is_reported_and_another_is_not() {
    let mut silent = reflex();
    silent["blueprint"]["arm___"]["firing_threshold"] = json!(100);
    for (name, genome, is_silent) in [("heard", reflex(), false), ("silent", silent, true)] {
        let file = File::new(name, &genome);
        let (_, mut brain) = brain(
            &scenario(&file, &format!("bursts_per_tick = 2\n{REFLEX}")),
            &cpu(),
        );
        assert!(brain.run_notes().is_empty(), "nothing ran");
        for _ in 0..10 {
            brain.tick(&[0.5, 0.0], &mut [0.0]).expect("a tick");
        }
        let expected: &[&str] = if is_silent {
            &["motor torque (area arm___) never fired: at rest in 10 of 10 ticks"]
        } else {
            &[]
        };
        assert_eq!(brain.run_notes(), expected, "{name}");
    }
}

#[test]
fn converted_units_are_reported() {
    let mut genome = reflex();
    genome["blueprint"]["arm___"]["leak_coefficient"] = json!(10);
    let file = File::new("legacy", &genome);
    let (_, brain) = brain(&scenario(&file, REFLEX), &cpu());
    let [note] = brain.notes() else {
        panic!("{:?}", brain.notes())
    };
    assert!(
        note.starts_with("units: leak is legacy")
            && note.ends_with("1 value was converted: 10 became 1 (arm___)"),
        "{note}"
    );
}

#[test]
fn wiring_that_does_not_fit_names_its_key() {
    let mut genome = reflex();
    genome["blueprint"]["flat__"] = area("OPU", [3, 2, 1], "", json!([]));
    let file = File::new("misfit", &genome);
    let motor = "motors = [{ channel = 0, area = \"arm___\" }]";
    for (sensors, motors, expected) in [
        (
            "{ channel = 0, area = \"ear\" }",
            motor,
            "brain.sensors[0].area: FILE has no area \"ear\"; its input areas: eye___",
        ),
        (
            "{ channel = 0, area = \"arm___\" }",
            motor,
            "brain.sensors[0].area: area arm___ of FILE is no input area; its input areas: eye___",
        ),
        (
            "{ channel = 0, area = \"eye___\" }, { channel = 1, area = \"eye___\", x = 1 }",
            motor,
            "brain.sensors[1]: x is 1; area eye___ has 1 voxel along it",
        ),
        (
            "{ channel = 0, area = \"eye___\", y = 7 }",
            motor,
            "brain.sensors[0]: y is 7; area eye___ has 1 voxel along it",
        ),
        (
            "{ channel = 0, area = \"eye___\" }, { channel = 1, area = \"eye___\" }",
            motor,
            "brain.sensors[1]: brain.sensors[0] writes to the same column",
        ),
        (
            "",
            "motors = [{ channel = 0, area = \"eye___\" }]",
            "brain.motors[0].area: area eye___ of FILE is no output area; its output areas: arm___, flat__",
        ),
        (
            "",
            "motors = [{ channel = 0, area = \"flat__\", x = 2, y = 1 }]",
            "brain.motors[0]: area: flat__ has 1 voxel along z; a coding needs 2 or more",
        ),
        (
            "",
            "motors = [{ channel = 0, area = \"arm___\" }, { channel = 0, area = \"arm___\" }]",
            "brain.motors[1].channel: torque is moved by brain.motors[0]",
        ),
    ] {
        let scenario = scenario(&file, &format!("sensors = [{sensors}]\n{motors}\n"));
        let plant = build_body(&scenario).expect("known");
        let error = build_brain(
            &scenario,
            plant.as_ref(),
            &cpu(),
            &mut tectum::WorkProgress::ignore,
        )
        .err()
        .expect(expected);
        // The sensors are in line 5 of the text, the motors in line 6.
        let line = if expected.starts_with("brain.sensors") {
            5
        } else {
            6
        };
        assert_eq!(
            error
                .to_string()
                .replace(&file.0.display().to_string(), "FILE"),
            format!("test:{line}: {expected}")
        );
    }
    let absent = Scenario::parse(
        &format!("[body]\nname = \"pendulum\"\n[brain]\ngenome = \"no.json\"\n{motor}\n"),
        "s",
        "s",
    )
    .expect("correct");
    let plant = build_body(&absent).expect("known");
    let error = build_brain(
        &absent,
        plant.as_ref(),
        &cpu(),
        &mut tectum::WorkProgress::ignore,
    )
    .err()
    .expect("no such file");
    assert!(error.to_string().contains("no.json"), "{error}");
}

#[test]
fn suspect_a_tick_that_fails_leaves_nothing_that_later_ticks_are_refused_for() {
    let file = File::new("failing", &reflex());
    let (_, mut brain) = brain(&scenario(&file, REFLEX), &cpu());
    let whole = brain.snapshot().expect("a state");
    let mut late = whole.clone();
    let mut counts = whole.u64("counts", 4).expect("there").to_vec();
    counts[0] = u64::from(u32::MAX) - 1;
    late.insert("counts", tectum::snapshot::Array::U64(counts));
    brain.restore(&late).expect("a state of a very long run");
    let mut fail = || {
        brain
            .tick(&[0.0; 2], &mut [0.0])
            .expect_err("the numbers of bursts end")
            .to_string()
    };
    let first = fail();
    assert!(first.contains("their numbers end"), "{first}");
    assert_eq!(fail(), first, "what the first one injected is forgotten");
}

#[test]
fn suspect_all_64_bits_of_a_seed_matter_to_a_genome() {
    use tectum_spiking::{Stimulus, seed_of};
    let file = File::new("seeds", &dreamer());
    let genome = Genome::read(&file.0, &GenomeOptions::default()).expect("a genome");
    let reached = |seed: u64| {
        (1..100)
            .map(|burst| Stimulus::new(&genome, 0.5, seed).expect("a part").of(burst))
            .collect::<Vec<_>>()
    };
    assert!(reached(5) == reached(5) && reached(5) != reached(5 + (1 << 32)));
    assert!((0..64).all(|bit| seed_of(5) != seed_of(5 ^ (1 << bit))) && seed_of(77) == 77);
    let actions = |seed: u64| {
        let text = format!(
            "[body]\nname = \"pendulum\"\n[brain]\ngenome = {:?}\n{DREAMER}",
            file.0
        );
        let mut scenario = Scenario::parse(&text, "test", "test").expect("correct");
        scenario.run.seed = seed;
        let plant = build_body(&scenario).expect("known");
        let mut brain = build_brain(
            &scenario,
            plant.as_ref(),
            &cpu(),
            &mut tectum::WorkProgress::ignore,
        )
        .expect("builds");
        let seen = |tick: u32| [(f64::from(tick) * 0.7).sin() as f32 * 3.0, 0.5];
        let answer = |tick| {
            let mut action = [0.0];
            brain.tick(&seen(tick), &mut action).expect("a tick");
            action[0]
        };
        (0..80).map(answer).collect::<Vec<f32>>()
    };
    assert!(actions(5) == actions(5) && actions(5) != actions(5 + (1 << 32)));
}
