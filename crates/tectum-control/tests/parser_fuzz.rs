//! Every parser of external text or bytes, under mutated input: none panics, none uses memory
//! beyond a bound, an error names its location, and accepted input round-trips.
//!
//! `TECTUM_FUZZ_INPUTS` is the number of inputs for each parser, 50,000 unless given.

#[path = "parser_fuzz/mutator.rs"]
mod mutator;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use mutator::Mutator;
use tectum::Device;
use tectum::route::{Calibration, CalibrationCache, Rates};
use tectum::snapshot::{Array, Snapshot};
use tectum_control::body::equations::recording::PlantRecording;
use tectum_control::body::{Start, body, pendulum};
use tectum_control::brain::Recipe;
use tectum_control::closed_loop::{Fault, TickRecord, Timing};
use tectum_control::recording::{Recorder, Trace, recover_recording};
use tectum_control::rig_csv::RigRecording;
use tectum_control::ros::{self, Decoder, Definition, Encoder};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body};
use tectum_equations::{LIBRARY, System};
use tectum_spiking::genome::{Genome, GenomeOptions};
use tectum_transformer::Header;

use crate::gguf_writer;
use crate::ros_messages::{EVERY, vectors};

/// What is wrong with how an input was taken; `Ok` says whether it was understood.
type Verdict = Result<bool, String>;

/// A parser, seeds that it accepts, words of its grammar.
struct Target {
    name: &'static str,
    seeds: fn() -> Vec<Vec<u8>>,
    dictionary: &'static [&'static str],
    check: fn(&[u8]) -> Verdict,
    /// Inputs that once failed, each kept as a row.
    found: fn() -> Vec<(Vec<u8>, &'static str)>,
}

/// Memory that a parser's inputs may add to the process's peak; inputs are at most 16 KiB.
const MAX_GROWTH_BYTES: u64 = 64 << 20;

const TARGETS: [Target; 13] = [
    Target {
        name: "scenario",
        seeds: scenario_seeds,
        dictionary: &[
            "[body]",
            "[brain]",
            "[brain.cost]",
            "[brain.twin]",
            "[loop]",
            "[[brain.motors]]",
            "sensors = [{",
            "name = ",
            "hidden = [",
            "seed = 0x",
            "{",
            "\"\"\"",
            "'''",
            "\\u0000",
            "\\U0010FFFF",
            "1979-05-27T07:32:00Z",
            "a.b.c = ",
            "[[body]]",
            "\u{feff}",
            "é",
        ],
        check: check_scenario,
        found: Vec::new,
    },
    Target {
        name: "rig recording",
        seeds: || {
            vec![
                RIG.as_bytes().to_vec(),
                RIG.replace('\n', "\r\n").into_bytes(),
            ]
        },
        dictionary: &[
            "\"", "\"\"", ",", "elapsed", "nan", "\r\n", "1e400", "\u{feff}", "é",
        ],
        check: check_recording,
        found: Vec::new,
    },
    Target {
        name: "equation file",
        seeds: || LIBRARY.map(|(_, text)| text.as_bytes().to_vec()).into(),
        dictionary: &[
            "d/dt ",
            "parameter ",
            "state ",
            "input ",
            "noise ",
            "observe ",
            "when ",
            "keep ",
            "weigh ",
            "if ",
            " then ",
            " else ",
            " and ",
            "uniform(",
            "normal(",
            "start ",
            "equilibrium ",
            "wraps",
            " in -1 .. 1",
            "[m/s^2]",
            "1e999",
            "^(1/2)",
            "((((((((",
            "..",
            "é",
        ],
        check: check_plant,
        found: Vec::new,
    },
    Target {
        name: "plant recording",
        seeds: || {
            vec![
                PLANT.as_bytes().to_vec(),
                PLANT.replace('\n', "\r\n").into_bytes(),
            ]
        },
        dictionary: &[
            "\"", "\"\"", ",", "elapsed", "time", " [deg]", " [inch/s", "nan", "\r\n", "1e400",
            "\u{feff}", "é",
        ],
        check: check_plant_recording,
        found: Vec::new,
    },
    Target {
        name: "snapshot",
        seeds: || vec![snapshot().to_bytes(), Snapshot::default().to_bytes()],
        dictionary: &[
            "{\"a\":{\"dtype\":\"F32\",\"shape\":[",
            "data_offsets",
            "\"F64\"",
            "\"BF16\"",
            "[0,0]",
            "__metadata__",
            "}",
        ],
        check: check_snapshot,
        found: Vec::new,
    },
    Target {
        name: "trace",
        seeds: || vec![trace()],
        dictionary: &[
            "{\"tick\":",
            "null",
            "/observation",
            "/action",
            "/tick",
            "true",
            "}",
        ],
        check: check_trace,
        found: || {
            vec![
                (
                    one_channel_less(),
                    "periods with fewer numbers than channels: the plots then read past them",
                ),
                (
                    endless_record(),
                    "a length that overflows in the mcap crate, which then panics",
                ),
                (
                    endless_name(),
                    "a name's length that the mcap crate takes 4 GiB for",
                ),
            ]
        },
    },
    Target {
        name: "calibration cache",
        seeds: || vec![cache().to_json().expect("plain numbers").into_bytes()],
        dictionary: &[
            "\"entries\":",
            "\"rates\":",
            "\"key\":",
            "null",
            "[[[[[[[[",
            "\\ud800",
            "1e-400",
        ],
        check: check_cache,
        found: || {
            vec![(
                CLOSE_CALL.as_bytes().to_vec(),
                "a number that read back as its neighbour",
            )]
        },
    },
    Target {
        name: "device id",
        seeds: || {
            ["auto", "cpu", "null", "vulkan:7", "metal:12", "dx12:3"]
                .map(|id| id.as_bytes().to_vec())
                .into()
        },
        dictionary: &[":", "0", "00", "+", "99999999999999999999", "vulkan:"],
        check: check_device,
        found: || {
            vec![
                (b"vulkan:00".to_vec(), "opened under a second name"),
                (b"vulkan:+0".to_vec(), "opened under a second name"),
                (b"c\npp".to_vec(), "broke its error over two lines"),
            ]
        },
    },
    Target {
        name: "injected fault",
        seeds: || {
            [
                "device-lost@1",
                "nan@2.5",
                "slow@0.04",
                "sensor-lost@3",
                "sensor-stuck@1e1",
                "sensor-outlier@0",
                "stop@7",
            ]
            .map(|fault| fault.as_bytes().to_vec())
            .into()
        },
        dictionary: &["@", "-0", "1e308", "0x1", "inf", "nan@", "_"],
        check: check_fault,
        found: Vec::new,
    },
    Target {
        name: "genome",
        seeds: || {
            [FLAT_GENOME, GENOME]
                .map(|text| text.as_bytes().to_vec())
                .into()
        },
        dictionary: &[
            "\"_____10c-",
            "-cx-",
            "-nx-",
            "\"block_boundaries\": ",
            "\"cortical_mapping_dst\": {",
            "\"*\"",
            "\"?\"",
            "\"!\"",
            "\"?-1:?+1\"",
            "\"0..3\"",
            "[1, 1, 1]",
            "[\"randomizer\", 1, 1, false]",
            "[\"rotator_z\", 1, 1, false]",
            "[\"sweeper\", 1, 1, false],",
            "[\"tile\", 1, 1, false],",
            "[\"bitmask_decoder_x\", 1, 1, false],",
            "\"___pwr\"",
            "null",
            "true",
            "[[[[[[[[",
            "\\ud800",
            "e5",
        ],
        check: check_genome,
        found: Vec::new,
    },
    Target {
        name: "gguf",
        seeds: gguf_seeds,
        dictionary: &[
            "GGUF",
            "general.alignment",
            "general.architecture",
            "llama.",
            "blk.0.",
            ".weight",
            "\u{1}",
            "\u{8}",
            "\u{9}",
            "\u{c}",
            " ",
        ],
        check: check_gguf,
        found: Vec::new,
    },
    Target {
        name: "ROS definition",
        seeds: || {
            let known = ros::INTERFACES.map(|(name, _)| name).into_iter();
            let known = known.map(|name| Definition::known(name).expect("known").to_text());
            let texts = known.chain([vectors().definition]);
            texts.map(String::into_bytes).collect()
        },
        dictionary: &[
            "===\nMSG: ",
            "\nstring<=",
            "[<=",
            "[]",
            "float64[",
            "builtin_interfaces/Time",
            "std_msgs/msg/Header",
            "Part",
            "=",
            "\"",
            "'",
            "\\",
            "#",
            "[1, 2]",
            "4294967295",
            "0x",
            "-",
            "IDL: ",
        ],
        check: check_definition,
        found: Vec::new,
    },
    Target {
        name: "ROS message",
        seeds: || {
            let messages = vectors().messages.into_iter();
            let every = messages.filter(|message| message.kind == EVERY);
            every.map(|message| message.bytes()).collect()
        },
        dictionary: &["\u{0}\u{1}\u{0}\u{0}", "\u{0}", "\u{1}", "\u{7f}\u{7f}"],
        check: check_message,
        found: || {
            vec![(
                b"\x00\x01\x00\x00\xff\xff\xff\xff".to_vec(),
                "lengths that nothing follows",
            )]
        },
    },
];

const FLAT_GENOME: &str = r#"{"version": "2.0", "genome_title": "f", "blueprint": {
"_____10c-___pwr-cx-___bbx-i": 1, "_____10c-___pwr-cx-___bby-i": 1, "_____10c-___pwr-cx-___bbz-i": 1,
"_____10c-___pwr-nx-pstcr_-f": 500, "_____10c-___pwr-nx-leak_c-f": 10, "_____10c-___pwr-nx-excite-f": 100,
"_____10c-___pwr-cx-dstmap-d": {"o__mot": [["0_0_0-1_0_0", [1, 1, 1], 1, false], ["projector", [1, 1, 1], -30, true, 1, 100, 1]]},
"_____10c-o__mot-cx-__name-t": "motor", "_____10c-o__mot-cx-_group-t": "OPU", "_____10c-o__mot-cx-devcnt-i": 2,
"_____10c-o__mot-cx-___bbx-i": 8, "_____10c-o__mot-cx-___bby-i": 1, "_____10c-o__mot-cx-___bbz-i": 10,
"_____10c-o__mot-cx-_n_cnt-i": 2, "_____10c-o__mot-cx-synatt-f": 50, "_____10c-o__mot-nx-ftincz-f": 0.5, "_____10c-o__mot-nx-mp_acc-b": true,
"_____10c-o__mot-cx-dstmap-d": {"o__mot": [["spread", [1, 1, 1], 1.0, false, 1, 1, 1], ["lateral_+z", [2], 3, false]], "___pwr": [["memory", 1, 1, false]]}},
"neuron_morphologies": {"0_0_0-1_0_0": {"parameters": {"patterns": [[[0, 0, 0], [1, 0, 0]]]}, "type": "patterns", "class": "custom"},
"spread": {"type": "patterns", "parameters": {"patterns": [[["*", "?", 3], [2, "*", "!"]], [["*", "*", "*"], ["?", 0, "?"]]]}},
"lateral_+z": {"parameters": {"vectors": [[0, 0, 1], [1, 0, -1]]}, "type": "vectors", "class": "core"},
"memory": {"parameters": {}, "type": "functions", "class": "core"}},
"physiology": {"burst_delay": 0.025, "plasticity_queue_depth": 3}, "brain_regions": {"root": {"title": "r", "areas": ["o__mot"]}}}"#;

const GENOME: &str = r#"{"version": "2.1", "blueprint": {
"b19fbW90X18=": {"cortical_name": "eye", "group_id": "IPU", "block_boundaries": [6, 4, 3], "relative_coordinate": [0, -3, 7],
"firing_threshold": 1.5, "firing_threshold_increment": [0, 0.5, 1], "leak_coefficient": 0.25, "neuron_excitability": 0.5, "refractory_period": 2,
"mp_charge_accumulation": false, "psp_uniform_distribution": true, "cortical_mapping_dst": {"cdeep1": [
["expander_x", 1, 1, false], ["reducer_x", 1, 1, false], ["lateral_pairs_x", 1, 2, false], ["tiles", 1, 1, false],
{"morphology_id": "projector", "morphology_scalar": [1, 1, 1], "postSynapticCurrent_multiplier": -2, "plasticity_flag": true,
"plasticity_constant": 1, "ltp_multiplier": 2, "ltd_multiplier": 1, "plasticity_window": 3, "synaptic_delay_bursts": 1, "synapse_attractivity": 40}]}},
"cdeep1": {"cortical_dimensions": {"x": 2, "y": 5, "z": 4}, "cortical_neuron_per_vox_count": 3, "is_mem_type": true, "temporal_depth": 4,
"neuron_post_synaptic_potential": 7, "consecutive_fire_cnt_max": 3, "snooze_length": 1, "mp_driven_psp": true}},
"neuron_morphologies": {"tiles": {"parameters": {"src_seed": [2, 2, 1], "src_pattern": [[1, 0], [1, 1], [1, 0]], "mapper_morphology": "projector"},
"type": "composite", "class": "core"}}, "physiology": {"simulation_timestep": 0.1, "quantization_precision": "fp32"}}"#;

const PLANT: &str =
    "position [inch],angle [deg],command,elapsed\n0,0,0.1,40\n0.5,179,-0.2,40\n0.5,178,0.2,41\n";

const RIG: &str = "la_position,pend_velocity,pend_position,cmd_volts,elapsed,note\n0,0,-180,0.1,40,a\n0.5,-3.25,179,-0.2,41.5,\"b,\"\n";

fn scenario_seeds() -> Vec<Vec<u8>> {
    let long = "name = \"x\"\n[body]\nname = \"rig\"\nstart = \"random\"\n[brain]\nname = \"mppi\"\nsamples = 8\nhorizon = 4\nhold = 2\nsigma = 3\n\
                sigma_min = 0.15\ntemperature = 0.1\n[brain.cost]\npend_position = 2.5\n[brain.twin]\nhidden = [64, 32]\nsteps = 30\n\
                data = \"rig.csv\"\nlearning_rate = 4e-3\n[loop]\nseconds = 2.5\nseed = 0x10\nclock = \"sim\"\noverrun = \"safe\"\nstall_periods = 3\n";
    let genome = "[body]\nname = \"pendulum\"\n[brain]\ngenome = \"g.json\"\nunits = \"legacy\"\nsilence = \"skips\"\nbursts_per_tick = 2\n\
                  sensors = [{ channel = \"speed\", area = \"eye___\", x = 1, y = 2, coding = \"fractional\", amount = 2.5 }]\n\
                  [[brain.motors]]\nchannel = 0\narea = \"arm___\"\ncoding = \"linear\"\nrest = -1.5\n";
    let files = ["pendulum", "gym_pendulum", "learner", "cart_pole", "seeker"].map(|name| {
        Scenario::open(name)
            .expect("built in")
            .to_toml()
            .expect("plain")
    });
    [long, genome]
        .map(str::to_owned)
        .into_iter()
        .chain(files)
        .map(String::into_bytes)
        .collect()
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.insert("brain.mean", Array::F32(vec![1.0, f32::NAN, -0.0]));
    snapshot.insert("body.state", Array::F64(vec![0.5; 4]));
    snapshot.insert("loop.counts", Array::U64(vec![u64::MAX, 3]));
    snapshot
}

fn trace() -> Vec<u8> {
    let plant = body("pendulum", Some(Start::Hanging)).expect("known");
    let mut recorder = Recorder::new(
        std::io::Cursor::new(Vec::new()),
        plant.spec(),
        Some((pendulum::DESCRIPTOR.task)().measure()),
    )
    .expect("memory");
    for tick in 0..3 {
        let record = TickRecord {
            tick,
            time_ns: tick * 50_000_000,
            observation: &[if tick == 2 { f32::NAN } else { 1.0 }, 0.5],
            action: &[0.5],
            measure: 0.25,
            reward: -1.0,
            held: false,
            fallback: tick == 1,
            terminated: false,
            timing: Some(Timing {
                latency_ns: 10,
                lateness_ns: 20,
            }),
            link: None,
            commands: None,
        };
        recorder.push(&record).expect("memory");
    }
    recorder.finish().expect("memory").into_inner()
}

/// A trace whose first observation names one channel twice.
fn one_channel_less() -> Vec<u8> {
    let mut bytes = trace();
    let (name, other) = (b"\"speed\":0.5", b"\"angle\":0.5");
    let place = bytes
        .windows(name.len())
        .position(|window| window == name)
        .expect("recorded");
    bytes[place..place + name.len()].copy_from_slice(other);
    bytes
}

/// A trace whose first record is 2⁶⁴ − 1 bytes long.
fn endless_record() -> Vec<u8> {
    let mut bytes = trace();
    bytes[9..17].fill(0xFF);
    bytes
}

/// A trace whose first name is 2³² − 1 bytes long.
fn endless_name() -> Vec<u8> {
    let mut bytes = trace();
    bytes[17..21].fill(0xFF);
    bytes
}

/// A tiny model of four types with arrays in its metadata, and one of f32 with codes next to its
/// weights.
fn gguf_seeds() -> Vec<Vec<u8>> {
    let mut file = gguf_writer::llama();
    file.set("general.alignment", 4, &64u32.to_le_bytes());
    file.alignment = 64;
    file.set(
        "nested",
        9,
        &[
            &9u32.to_le_bytes()[..],
            &1u64.to_le_bytes(),
            &7u32.to_le_bytes(),
            &2u64.to_le_bytes(),
            &[0, 1],
        ]
        .concat(),
    );
    for (kind, block, bytes) in [
        (30, 1, 2),
        (2, 32, 18),
        (8, 32, 34),
        (12, 256, 144),
        (14, 256, 210),
    ] {
        let data = (0..2 * bytes).map(|at| (at * 29) as u8).collect();
        file.tensors.push(gguf_writer::Entry {
            name: format!("codes.{kind}"),
            dimensions: vec![block, 2],
            kind,
            start: None,
            data,
        });
    }
    vec![
        file.write(),
        std::fs::read(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tectum-transformer/tests/data/tiny_llama.gguf"
        ))
        .expect("tracked"),
    ]
}

const CLOSE_CALL: &str = "{\"schema\":\"tectum.calibration/1\",\"entries\":[{\"key\":\"a\",\"rates\":{\"run_s\":0,\"launch_s\":7.1875000000000015e-9,\
    \"transfer_s\":0,\"upload_bytes_per_s\":null,\"download_bytes_per_s\":null,\"memory_bytes_per_s\":1,\"near_bytes_per_s\":1,\
    \"flop_per_s\":1,\"lane_flop_per_s\":1}}]}";

fn cache() -> CalibrationCache {
    let rates = Rates {
        run_s: 1e-7,
        launch_s: 7.187_500_000_000_001e-9,
        transfer_s: 0.0,
        upload_bytes_per_s: None,
        download_bytes_per_s: Some(1e9),
        memory_bytes_per_s: 1.234_567_890_123e10,
        cached_bytes_per_s: 1e11,
        flop_per_s: 1e11,
        lane_flop_per_s: 3.3e10,
    };
    let mut cache = CalibrationCache::default();
    cache.insert(&Calibration {
        device: Device::list().swap_remove(0),
        rates,
    });
    cache
}

/// Checks an error's text by its required beginning.
fn placed(error: &tectum::Error, begins: &[&str]) -> Verdict {
    let text = error.to_string();
    if begins.iter().any(|begin| text.starts_with(begin)) {
        Ok(false)
    } else {
        Err(format!("the error names no place: {text}"))
    }
}

fn check_scenario(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(false);
    };
    let scenario = match Scenario::parse(text, "s.toml", "s") {
        // Old names are read with a warning, and written by their new ones.
        Ok(scenario) => Scenario {
            warnings: Vec::new(),
            ..scenario
        },
        Err(error) => return placed(&error, &["s.toml:"]),
    };
    let written = scenario
        .to_toml()
        .map_err(|error| format!("understood, but not written: {error}"))?;
    match Scenario::parse(&written, "again", "s") {
        Ok(again) if again == scenario => {}
        Ok(_) => return Err(format!("reads back as another: {written}")),
        Err(error) => return Err(format!("does not read back: {error}: {written}")),
    }
    // Recording plans of the largest networks is slow; a rejection is as good as a plan.
    if bytes.len() < 512 {
        let recipe = build_body(&scenario).and_then(|body| brain_recipe(&scenario, body.spec()));
        if let Ok(Recipe::Device(recipe)) = recipe {
            drop(recipe.training_plan());
        }
    }
    Ok(true)
}

fn check_recording(bytes: &[u8]) -> Verdict {
    let recording = match RigRecording::parse(bytes) {
        Ok(recording) => recording,
        Err(error) => {
            return placed(
                &error,
                &[
                    "line ",
                    "the file is empty",
                    "there are no rows after the header",
                ],
            );
        }
    };
    let columns = [
        &recording.la_position_in,
        &recording.pend_velocity_deg_per_s,
        &recording.pend_position_deg,
        &recording.cmd_volts,
    ];
    let is_whole = columns.iter().all(|column| {
        column.len() == recording.len() && column.iter().all(|number| number.is_finite())
    });
    let is_timed = recording.elapsed_ms.len() == recording.len()
        && recording
            .elapsed_ms
            .iter()
            .all(|ms| *ms > 0.0 && ms.is_finite());
    if is_whole && is_timed && recording.angle_is_valid.len() == recording.len() {
        Ok(true)
    } else {
        Err(format!("{recording:?}"))
    }
}

fn check_plant(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(false);
    };
    match System::parse(text, "b.plant") {
        Ok(system) => {
            let values = system.default_parameters();
            let again = system
                .text_with(text, "b.plant", &values)
                .and_then(|text| System::parse(&text, "b.plant"))
                .map_err(|error| error.to_string())?;
            if again
                .default_parameters()
                .iter()
                .map(|value| value.to_bits())
                .eq(values.iter().map(|value| value.to_bits()))
            {
                Ok(true)
            } else {
                Err(format!(
                    "parameters {values:?} read back as {:?}",
                    again.default_parameters()
                ))
            }
        }
        Err(error) => placed(&error, &["b.plant: line "]),
    }
}

fn check_plant_recording(bytes: &[u8]) -> Verdict {
    let system = LIBRARY
        .iter()
        .find(|(name, _)| *name == "cart_servo.plant")
        .map(|(name, text)| System::parse(text, name))
        .expect("it ships")
        .expect("valid");
    match PlantRecording::parse(bytes, &system, &[]) {
        Ok(recording) => {
            let numbers = recording
                .observations
                .iter()
                .flatten()
                .chain(&recording.inputs)
                .flatten()
                .chain(&recording.elapsed_s);
            if numbers.into_iter().all(|number| number.is_finite()) {
                Ok(true)
            } else {
                Err("a number that is not finite".to_owned())
            }
        }
        Err(error) => placed(&error, &["line ", "there are no rows after the header"]),
    }
}

fn check_snapshot(bytes: &[u8]) -> Verdict {
    let snapshot = match Snapshot::parse(bytes) {
        Ok(snapshot) => snapshot,
        Err(error) => return placed(&error, &["not a snapshot", "array ", "header: "]),
    };
    // Compared as bytes: NaN is not equal to itself.
    let written = snapshot.to_bytes();
    let again = Snapshot::parse(&written)
        .map(|again| again.to_bytes())
        .map_err(|error| format!("does not read back: {error}"))?;
    if again == written {
        Ok(true)
    } else {
        Err("reads back as another".to_owned())
    }
}

fn check_trace(bytes: &[u8]) -> Verdict {
    // A recovered recording is complete: recovering it again changes nothing.
    if let Ok(made) = recover_recording(bytes) {
        let again = recover_recording(&made.bytes).map_err(|error| error.to_string())?;
        if again.lost_bytes != 0 || again.bytes != made.bytes || again.messages != made.messages {
            return Err(format!(
                "{} messages recovered, then {}",
                made.messages, again.messages
            ));
        }
    }
    let trace = match Trace::parse(bytes) {
        Ok(trace) => trace,
        Err(error) => {
            return placed(
                &error,
                &[
                    "not an MCAP recording",
                    "not a whole MCAP recording: it breaks off at byte",
                    "message ",
                    "a /tick message",
                ],
            );
        }
    };
    let is_even = |numbers: usize, names: usize| numbers == names;
    for tick in &trace.ticks {
        if !is_even(tick.observation.len(), trace.observation_names.len())
            || !is_even(tick.action.len(), trace.action_names.len())
        {
            return Err(format!(
                "tick {} has another number of channels than the trace has names",
                tick.tick
            ));
        }
    }
    Ok(true)
}

fn check_cache(bytes: &[u8]) -> Verdict {
    let cache = match CalibrationCache::parse(bytes, "c.json") {
        Ok(cache) => cache,
        Err(error) => return placed(&error, &["c.json: "]),
    };
    let written = cache
        .to_json()
        .map_err(|error| format!("understood, but not written: {error}"))?;
    match CalibrationCache::parse(written.as_bytes(), "again") {
        Ok(again) if again == cache => Ok(true),
        other => Err(format!("reads back as {other:?}")),
    }
}

fn check_device(bytes: &[u8]) -> Verdict {
    let Ok(id) = std::str::from_utf8(bytes) else {
        return Ok(false);
    };
    // Other tests open real adapters by their names.
    if id.contains(':') && Device::list().iter().any(|info| info.id == id) {
        return Ok(true);
    }
    match Device::open(id) {
        Ok(device) if device.info().id == id || id == "auto" => Ok(true),
        Ok(device) => Err(format!(
            "{id:?} opened {}, which has another name",
            device.info().id
        )),
        Err(error) => {
            let text = error.to_string();
            let is_named =
                text.contains(&format!("{id:?}")) || text.contains(&format!("device {id}:"));
            if is_named {
                Ok(false)
            } else {
                Err(format!("the error does not name the id: {text}"))
            }
        }
    }
}

fn check_fault(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(false);
    };
    match text.parse::<Fault>() {
        Ok(fault) if fault.to_string().parse::<Fault>().ok() == Some(fault) => Ok(true),
        Ok(fault) => Err(format!("{fault} does not read back")),
        Err(error) => placed(&error, &[&format!("inject {text:?}: ")]),
    }
}

fn check_genome(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(false);
    };
    let genome = match Genome::parse(text, &GenomeOptions::default()) {
        Ok(genome) => genome,
        Err(error) => {
            let sections = [
                "neuron_morphologies: ",
                "physiology: ",
                "brain_regions: ",
                "genome_title: ",
            ];
            return placed(
                &error,
                &[
                    &[
                        "not JSON: ",
                        "not a genome: ",
                        "version",
                        "blueprint: ",
                        "area ",
                    ][..],
                    &sections,
                ]
                .concat(),
            );
        }
    };
    let starts = genome
        .areas()
        .iter()
        .map(|area| area.neurons.start)
        .chain([genome.neurons()]);
    let ends = [0]
        .into_iter()
        .chain(genome.areas().iter().map(|area| area.neurons.end));
    if !starts.eq(ends) {
        return Err("areas have gaps".to_owned());
    }
    let estimate = genome.estimate();
    if genome.neurons() > 10_000 || estimate.synapses > 50_000 {
        return Ok(true);
    }
    let mut counted = vec![0u64; genome.mappings().len()];
    let mut fault = None;
    genome.synapses(1, &mut |synapse| {
        let mapping = &genome.mappings()[synapse.mapping as usize];
        let (from, to) = (
            &genome.areas()[mapping.source],
            &genome.areas()[mapping.destination],
        );
        if !from.neurons.contains(&synapse.source) || !to.neurons.contains(&synapse.target) {
            fault = Some(format!("{synapse:?} is outside its areas"));
        }
        counted[synapse.mapping as usize] += 1;
    });
    let is_off = |(counted, estimated): (&u64, &tectum_spiking::genome::MappingEstimate)| {
        *counted > estimated.synapses || (estimated.exact && *counted != estimated.synapses)
    };
    match counted.iter().zip(&estimate.mappings).position(is_off) {
        _ if fault.is_some() => Err(fault.unwrap_or_default()),
        Some(index) => Err(format!(
            "mapping {index} has {} synapses; estimated {:?}",
            counted[index], estimate.mappings[index]
        )),
        None => Ok(true),
    }
}

fn check_gguf(bytes: &[u8]) -> Verdict {
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => {
            return placed(
                &error,
                &[
                    "not a GGUF file",
                    "version ",
                    "the version: ",
                    "the number of ",
                    "the header has no end",
                    "key ",
                    "tensor ",
                ],
            );
        }
    };
    for (name, _) in header.keys() {
        match header.value(name, bytes) {
            Some(value) => drop(value.to_string()),
            None => return Err(format!("key {name} has no value")),
        }
    }
    for tensor in header.tensors() {
        let mut numbers = vec![0.0; tensor.shape.iter().product()];
        if let Err(error) = tensor.read(bytes, &mut numbers)
            && error.kind() != tectum::ErrorKind::Unsupported
        {
            return Err(format!("understood, but not read: {error}"));
        }
    }
    Ok(true)
}

fn check_definition(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(false);
    };
    let definition = match Definition::parse(EVERY, text) {
        Ok(definition) => definition,
        Err(error) => return placed(&error, &["definition of example_msgs/msg/Every: "]),
    };
    let written = definition.to_text();
    // Compared as text: NaN is not equal to itself.
    match Definition::parse(EVERY, &written) {
        Ok(again) if again.to_text() == written && again.type_hash() == definition.type_hash() => {}
        Ok(again) => return Err(format!("reads back as another: {}", again.to_text())),
        Err(error) => return Err(format!("does not read back: {error}: {written}")),
    }
    // A message without values is as long as it has to be, and is read.
    if let Ok(encoder) = Encoder::new(&definition, &[] as &[&str]) {
        let mut message = Vec::new();
        let encoded = encoder.encode(&[], &mut message);
        encoded.map_err(|error| format!("no message: {error}"))?;
        let mut decoder = Decoder::new(&definition, &[] as &[&str]).map_err(|e| e.to_string())?;
        let decoded = decoder.decode(&message).map(|_| ());
        decoded.map_err(|error| format!("its message is not read: {error}"))?;
    }
    Ok(true)
}

fn check_message(bytes: &[u8]) -> Verdict {
    static DECODER: OnceLock<Decoder> = OnceLock::new();
    let decoder = DECODER.get_or_init(|| {
        let definition = Definition::parse(EVERY, &vectors().definition).expect("a definition");
        let paths = [
            "text",
            "texts",
            "doubles",
            "data",
            "ids",
            "parts[1].label",
            "last",
        ];
        Decoder::new(&definition, &paths).expect("its fields")
    });
    let mut decoder = decoder.clone();
    let fields = match decoder.decode(bytes) {
        Ok(fields) => fields,
        Err(error) => return placed(&error, &["example_msgs/msg/Every: "]),
    };
    let is_whole = fields.text(0).is_some()
        && fields.texts(1).count() == fields.count(1)
        && fields.numbers(2).len() == fields.count(2)
        && fields
            .bytes(3)
            .is_some_and(|data| data.len() == fields.count(3))
        && fields.numbers(4).len() == fields.count(4)
        && fields.text(5).is_some()
        && fields.number(6).is_some();
    is_whole
        .then_some(true)
        .ok_or_else(|| "a field is missing".to_owned())
}

/// Runs a check; a panic is a verdict too.
fn judged(target: &Target, bytes: &[u8]) -> Verdict {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(bytes)));
    outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// The maximum address space that the process has had, where the system reports it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmPeak:"))?;
    line.trim()
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib << 10)
}

/// Set in the process that runs the inputs.
const ALONE: &str = "TECTUM_FUZZ_ALONE";

#[test]
fn no_input_panics_or_takes_memory_and_errors_name_their_place() {
    // In a process of its own: the memory of tests that run at the same time is not that of the
    // parsers.
    if std::env::var_os(ALONE).is_none() {
        let name = "parser_fuzz::no_input_panics_or_takes_memory_and_errors_name_their_place";
        let suite = std::env::current_exe().expect("this program");
        let ended = std::process::Command::new(suite)
            .args([name, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .status()
            .expect("starts");
        assert!(ended.success(), "{ended}");
        return;
    }
    let inputs = std::env::var("TECTUM_FUZZ_INPUTS")
        .ok()
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(50_000);
    // Drivers and the thread pool allocate memory at first use; that does not count for a parser.
    drop(Device::list());
    for (number, target) in TARGETS.iter().enumerate() {
        for (input, what) in (target.found)() {
            if let Err(verdict) = judged(target, &input) {
                panic!(
                    "{}: {:?} ({what}): {verdict}",
                    target.name,
                    String::from_utf8_lossy(&input)
                );
            }
        }
        let seeds = (target.seeds)();
        for seed in &seeds {
            let understood = judged(target, seed)
                .unwrap_or_else(|verdict| panic!("{}: a seed: {verdict}", target.name));
            assert!(
                understood || target.name == "device id",
                "{}: a seed is not understood",
                target.name
            );
        }
        let before = peak_bytes();
        let mut mutator = Mutator::new(seeds, target.dictionary, number as u64);
        let mut understood = 0;
        for input in 0..inputs {
            let bytes = mutator.next_input();
            match judged(target, &bytes) {
                Ok(true) => {
                    understood += 1;
                    mutator.keep(&bytes);
                }
                Ok(false) => {}
                Err(verdict) => panic!(
                    "{}: input {input}, {:?}: {verdict}",
                    target.name,
                    String::from_utf8_lossy(&bytes)
                ),
            }
        }
        let growth = peak_bytes()
            .zip(before)
            .map(|(after, before)| after - before);
        println!(
            "fuzz {}: {inputs} inputs, {understood} understood, peak grew by {} KiB",
            target.name,
            growth.unwrap_or(0) >> 10
        );
        assert!(
            growth.is_none_or(|growth| growth <= MAX_GROWTH_BYTES),
            "{}: the peak grew by {growth:?} bytes",
            target.name
        );
    }
}
