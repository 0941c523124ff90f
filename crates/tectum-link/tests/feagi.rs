//! A genome that is served to agents of FEAGI.

pub mod agent;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tectum::Device;
use tectum_link::feagi::{Counts, Server, simulation_options};
use tectum_link::{Address, Token};
use tectum_spiking::Simulation;
use tectum_spiking::genome::{AreaRole, Genome, GenomeOptions};

use agent::{Agent, MotorFrame, Voxel, fired, genome, network, serve, voxels};

const EYE: &[u8; 8] = b"iseen___";
const ARM: &str = "omove___";
const BEAT: &str = "obeat___";

/// Waits until the counts of a server fulfil a condition.
fn wait(server: &Server, what: &str, is_met: impl Fn(&Counts) -> bool) -> Counts {
    loop {
        let counts = server.counts();
        if is_met(&counts) {
            return counts;
        }
        assert!(server.is_running(), "{what}: {counts:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The motor structures of bursts up to a last one, of a direct run with stimuli by burst.
fn direct_run(genome: &Genome, stimuli: &[(u16, Voxel)], last: u16) -> Vec<Option<Vec<u8>>> {
    let connected = network(genome);
    let options = simulation_options(genome, connected.constant_inputs);
    let cpu = Device::open("cpu").expect("always");
    let mut simulation =
        Simulation::new(Arc::new(connected.network), &cpu, &options).expect("runs");
    let eye = &genome.areas()[genome.area("iseen_").expect("there")];
    let outputs = genome
        .areas()
        .iter()
        .filter(|area| area.role == AreaRole::Output);
    let outputs: Vec<_> = outputs.collect();
    (1..=last)
        .map(|burst| {
            let own = stimuli.iter().filter(|(number, _)| *number == burst);
            let own: Vec<(u32, f32)> = own
                .map(|(_, (at, p))| (eye.first_neuron(*at), *p))
                .collect();
            simulation.inject(&own).expect("accepted");
            simulation.run(1).expect("runs");
            let firings = simulation.fired().expect("read");
            structure(&outputs, &firings)
        })
        .collect()
}

/// The structure of the firings of output areas, written out here.
fn structure(outputs: &[&tectum_spiking::genome::Area], firings: &[u32]) -> Option<Vec<u8>> {
    let areas = outputs.iter().filter_map(|area| {
        let own = firings
            .iter()
            .filter(|neuron| area.neurons.contains(neuron));
        let own: Vec<Voxel> = own.map(|neuron| (area.voxel_of(*neuron), 1.0)).collect();
        (!own.is_empty()).then(|| (area.id.bytes(), own))
    });
    let areas: Vec<_> = areas.collect();
    let mut heads = vec![11, 1, areas.len() as u8, 0];
    let (mut data, begin) = (Vec::new(), 4 + 16 * areas.len());
    for (id, own) in &areas {
        // The structure of one area has its data behind 20 bytes.
        let columns = &voxels(id, own)[20..];
        heads.extend(id);
        heads.extend(((begin + data.len()) as u32).to_le_bytes());
        heads.extend((columns.len() as u32).to_le_bytes());
        data.extend(columns);
    }
    (!areas.is_empty()).then(|| [heads, data].concat())
}

#[test]
fn firings_are_those_of_a_direct_run_with_both_sizes_of_ids() {
    let genome = genome();
    for id_bytes in [48, 8] {
        let server = serve(&genome, |_| {});
        let mut agent = Agent::registered(&server, id_bytes, "robot");
        assert_eq!(agent.id.len(), id_bytes);
        let mut frames: Vec<MotorFrame> = agent.motors_until(BEAT, [0, 0, 0]);
        let mut stimuli = Vec::new();
        for number in 0..8u16 {
            // Each stimulus is another voxel, with names as genomes and as the released client
            // write them.
            let voxel = [u32::from(number) % 4, 0, u32::from(number) % 3];
            let id = if number % 2 == 0 { EYE } else { b"iseen_  " };
            assert!(agent.sense(number, &voxels(id, &[(voxel, 1.5)])));
            let own = agent.motors_until(ARM, voxel);
            // The arm fires in the burst after the eye.
            stimuli.push((own[own.len() - 1].0 - 1, (voxel, 1.5)));
            frames.extend(own);
        }
        frames.extend(agent.motors_until(BEAT, [0, 0, 0]));
        let (first, last) = (frames[0].0, frames[frames.len() - 1].0);
        let expected = direct_run(&genome, &stimuli, last);
        let mut echoes = 0;
        for (burst, structure) in &frames {
            let own = expected[usize::from(*burst) - 1].as_ref();
            assert_eq!(own, Some(structure), "burst {burst}");
            echoes += u32::from(fired(structure).contains_key("oecho___"));
        }
        assert!(echoes >= 8, "{echoes} frames with echoes");
        let fired = expected[usize::from(first) - 1..].iter().flatten().count();
        let counts = server.counts();
        let missing = (fired - frames.len()) as u64;
        assert!(
            missing <= counts.dropped_motor_frames,
            "{missing}: {counts:?}"
        );
        assert_eq!(
            (counts.used_frames, counts.refused_frames),
            (8, 0),
            "{counts:?}"
        );
    }
}

#[test]
fn an_agent_that_is_silent_is_deregistered_and_registers_again() {
    let stale_after = Duration::from_secs(2);
    let server = serve(&genome(), |settings| settings.stale_after = stale_after);
    let mut agent = Agent::registered(&server, 48, "robot");
    let begin = Instant::now();
    while begin.elapsed() < stale_after + stale_after / 2 {
        assert_eq!(agent.ask(&json!("heart_beat")), json!("heart_beat"));
        std::thread::sleep(Duration::from_millis(50));
    }
    let devices = json!({"agent_configuration": {"AgentConfigurationDetails": {"feedbacks": {}}}});
    assert_eq!(agent.ask(&devices), json!("heart_beat"));
    assert_eq!((server.agents(), server.counts().stale_agents), (1, 0));
    wait(&server, "stale", |counts| counts.stale_agents == 1);
    assert_eq!(server.agents(), 0);
    // The heart beat of an unknown agent has no answer: the next answer is that of the next
    // request.
    agent.send(&json!("heart_beat"));
    assert_eq!(agent.deregister(), json!("not_registered"));
    let mut next = Agent::registered(&server, 48, "robot");
    assert!(next.sense(0, &voxels(EYE, &[([0, 0, 0], 1.0)])));
    next.motors_until(ARM, [0, 0, 0]);
    assert_eq!(next.deregister(), json!("success"));
    assert_eq!(next.deregister(), json!("not_registered"));
    let counts = wait(&server, "ended", |counts| counts.deregistrations == 1);
    assert_eq!((server.agents(), counts.registrations), (0, 2));
}

#[test]
fn an_agent_that_is_gone_is_replaced_by_itself_and_bursts_continue() {
    let server = serve(&genome(), |settings| settings.max_agents = 1);
    for round in 1..=3u64 {
        // The first registration after an end may come before that end.
        let mut agent = loop {
            let mut agent = Agent::connect(&server, 48);
            if agent.register("robot", &[0; 32])["success"].is_array() {
                break agent;
            }
        };
        assert_eq!(
            Agent::connect(&server, 48).register("other", &[0; 32]),
            json!("failed_invalid_request")
        );
        assert!(
            agent.sense(1, &voxels(EYE, &[([1, 0, 2], 1.0)])),
            "round {round}"
        );
        agent.motors_until(ARM, [1, 0, 2]);
        let bursts = server.counts().bursts;
        drop(agent);
        wait(&server, "bursts", |counts| counts.bursts >= bursts + 5);
    }
    let counts = server.counts();
    assert_eq!(
        (counts.registrations, counts.replaced_agents),
        (3, 2),
        "{counts:?}"
    );
    let ended = server.stop().expect("no error");
    assert!(ended.counts.bursts >= 15 && ended.receipt.runs >= ended.counts.bursts);
    let workload = ended.receipt.workload.expect("stated");
    assert_eq!(workload["served"]["registrations"], json!(3));
    assert!(ended.burst_latency_ms.p99 > 0.0);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let server = serve(&genome(), |_| {});
    let mut agent = Agent::registered(&server, 48, "robot");
    let arm = ([2, 0, 0], 1.0);
    let refused = [
        voxels(b"absent__", &[arm]),
        voxels(b"omove___", &[arm]),
        voxels(EYE, &[arm, ([4, 0, 0], 1.0)]),
        voxels(EYE, &[arm, ([0, 0, 0], f32::NAN)]),
        voxels(EYE, &[arm, ([0, 0, 0], 1e9)]),
        voxels(EYE, &[arm])[..30].to_vec(),
        b"\x01\x01{}".to_vec(),
    ];
    let count = refused.len() as u64;
    for structure in &refused {
        assert!(agent.sense(0, structure));
    }
    let foreign = agent::container(0, &[9; 48], &voxels(EYE, &[arm]));
    assert!(agent.sense_bytes(foreign) && agent.sense_bytes(b"abc".to_vec()));
    wait(&server, "refused", |counts| {
        counts.refused_frames == count + 2
    });
    // Late and repeated numbers, of which none is used.
    assert!(agent.sense(7, &voxels(EYE, &[([0, 0, 1], 1.0)])));
    let before = agent.motors_until(ARM, [0, 0, 1]);
    for counter in [7, 6, 65_535] {
        assert!(agent.sense(counter, &voxels(EYE, &[arm])));
    }
    wait(&server, "late", |counts| counts.stale_frames == 3);
    assert!(agent.sense(8, &voxels(EYE, &[([1, 0, 1], 1.0)])));
    let frames = [before, agent.motors_until(ARM, [1, 0, 1])].concat();
    for (burst, structure) in frames {
        let fired = fired(&structure);
        let arm = fired.get(ARM).cloned().unwrap_or_default();
        assert!(!arm.contains(&[2, 0, 0]), "burst {burst}: {arm:?}");
    }
    let counts = server.counts();
    assert_eq!(
        (counts.sensor_frames, counts.used_frames),
        (2, 2),
        "{counts:?}"
    );
}

#[test]
fn only_agents_with_the_token_are_registered() {
    // Base64 of the bytes 0 to 31.
    let token = Token::new("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("a word");
    let server = serve(&genome(), |settings| settings.token = Some(token));
    let mut own = [0; 32];
    (0..32).for_each(|place| own[place] = place as u8);
    let mut other = own;
    other[31] = 0;
    let mut agent = Agent::connect(&server, 8);
    assert_eq!(
        agent.register("robot", &other),
        json!("failed_invalid_auth")
    );
    // Connections of agents that are not registered end.
    let mut stranger = Agent::connect(&server, 48);
    stranger.open(&server.sensors().to_string(), &server.motors().to_string());
    wait(&server, "ended", |counts| counts.refused_connections >= 2);
    assert!(agent.register("robot", &own)["success"].is_array());
    assert!(agent.sense(0, &voxels(EYE, &[([3, 0, 0], 1.0)])));
    agent.motors_until(ARM, [3, 0, 0]);
    assert_eq!(server.counts().refused_agents, 1);
}

#[test]
fn settings_that_are_not_safe_or_not_possible_are_refused() {
    let start = |change: fn(&mut tectum_link::feagi::ServerSettings)| {
        let genome = genome();
        let connected = network(&genome);
        let cpu = Device::open("cpu").expect("always");
        let served = tectum_link::feagi::ServedGenome::new(
            &genome,
            Arc::new(connected.network),
            connected.constant_inputs,
            &[cpu],
        );
        let mut settings = tectum_link::feagi::ServerSettings::new(30.0).expect("valid");
        change(&mut settings);
        let started = Server::start(served.expect("runs"), &settings);
        started.err().expect("refused").to_string()
    };
    let error = start(|settings| {
        settings.control = Address::parse_tcp("tcp://0.0.0.0:0").expect("valid");
    });
    assert!(
        error.contains("tcp://0.0.0.0:0") && error.contains("needs a token"),
        "{error}"
    );
    let error = start(|settings| settings.token = Token::new("secret").ok());
    assert!(error.contains("base64 of 32 bytes"), "{error}");
    let error = start(|settings| settings.bursts_per_s = 0.0);
    assert!(error.contains("0 bursts per second"), "{error}");
}

#[test]
fn bytes_that_are_no_messages_end_their_connection_only() {
    let server = serve(&genome(), |settings| settings.max_frame_bytes = 1000);
    let mut agent = Agent::registered(&server, 48, "robot");
    agent.motors_until(BEAT, [0, 0, 0]);
    let before = server.counts().refused_connections;
    let greeting = |name: &str| {
        let mut bytes = vec![0; 64];
        (bytes[0], bytes[9], bytes[10]) = (0xff, 0x7f, 3);
        bytes[12..16].copy_from_slice(b"NULL");
        let ready = [
            b"\x05READY\x0bSocket-Type\0\0\0",
            &[name.len() as u8][..],
            name.as_bytes(),
        ];
        let ready = ready.concat();
        bytes.extend([4, ready.len() as u8]);
        [bytes, ready].concat()
    };
    let frame = |content: &[u8]| [&[0, content.len() as u8], content].concat();
    let huge = [2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff].to_vec();
    let attacks = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a browser of some kind\r\n\r\n".to_vec(),
        greeting("SUB"),
        [greeting("DEALER"), huge].concat(),
        [greeting("DEALER"), frame(b"\x80\x04\x95 a pickle")].concat(),
        [greeting("DEALER"), frame(b"no container")].concat(),
    ];
    let (host, port) = server.control().host_and_port();
    for attack in &attacks {
        let mut stream = TcpStream::connect((host, port)).expect("it listens");
        stream.write_all(attack).expect("connected");
        let mut received = Vec::new();
        // Until the server ends the connection; a reset is an end too.
        let _ = stream.read_to_end(&mut received);
        assert!(received.len() >= 64, "the server speaks first");
    }
    let count = attacks.len() as u64;
    wait(&server, "ended", |counts| {
        counts.refused_connections == before + count
    });
    // A sensor frame beyond the limit ends the agent's connection, and it connects again.
    let large = vec![([0, 0, 0], 1.0); 100];
    assert!(agent.sense(0, &voxels(EYE, &large)));
    wait(&server, "ended", |counts| {
        counts.refused_connections > before + count
    });
    let mut other = Agent::registered(&server, 48, "other");
    assert!(other.sense(0, &voxels(EYE, &[([3, 0, 2], 1.0)])));
    other.motors_until(ARM, [3, 0, 2]);
}

#[test]
fn a_subscriber_that_does_not_read_loses_frames_and_delays_no_burst() {
    let area = |group: &str, rest: serde_json::Value| {
        json!({"cortical_name": group, "group_id": group, "block_boundaries": [100, 1, 200],
               "mp_charge_accumulation": false, "cortical_mapping_dst": rest})
    };
    let document = json!({
        "version": "2.1",
        "blueprint": {
            "iseen_": area("IPU", json!({"omove_": [["block_to_block", [1, 1, 1], 2, false]]})),
            "omove_": area("OPU", json!({})),
        },
        "neuron_morphologies": {
            "block_to_block": {"type": "vectors", "parameters": {"vectors": [[0, 0, 0]]}},
        },
    });
    let genome = Genome::parse(&document.to_string(), &GenomeOptions::default()).expect("valid");
    let server = serve(&genome, |_| {});
    let mut agent = Agent::registered(&server, 48, "robot");
    // Frames of 320 kB, in each direction.
    let all = (0..100).flat_map(|x| (0..200).map(move |z| ([x, 0, z], 1.5)));
    let structure = voxels(EYE, &all.collect::<Vec<Voxel>>());
    let mut counts = server.counts();
    while counts.dropped_motor_frames == 0 {
        assert!(agent.sense(0, &structure));
        std::thread::sleep(Duration::from_millis(5));
        counts = server.counts();
    }
    wait(&server, "bursts", |now| now.bursts >= counts.bursts + 10);
    let frame = agent.motors();
    assert_eq!(fired(&frame.1)[ARM].len(), 20_000);
}

/// The interpreter with the client of FEAGI, if there is one.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TECTUM_FEAGI_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-feagi/bin/python");
    named.or(Some(own)).filter(|python| python.exists())
}

/// The client of FEAGI from PyPI, in the environment that `TECTUM_FEAGI_PYTHON` names or
/// `.venv-feagi` of the repository.
#[test]
fn an_unchanged_client_registers_sends_sensors_and_receives_motors() {
    let Some(python) = python() else {
        println!("skipped: feagi-rust-py-libs is absent: its agent against a served genome");
        return;
    };
    let token = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let server = serve(&genome(), |settings| {
        settings.token = Some(Token::new(token).expect("a word"));
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/feagi/client.py");
    let run = |token: &str, mode: &str| {
        Command::new(&python)
            .arg(&script)
            .args([server.control(), server.sensors(), server.motors()].map(ToString::to_string))
            .args([token, mode])
            .output()
            .expect("an interpreter")
    };
    // It is refused, killed while it is connected, and then works.
    let other = run("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "refused");
    let killed = run(token, "killed");
    let whole = run(token, "whole");
    for (output, expected) in [
        (other, "refused\n"),
        (killed, "connected\n"),
        (whole, "done\n"),
    ] {
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.ends_with(expected), "{text}\n{errors}");
    }
    let counts = wait(&server, "ended", |counts| counts.deregistrations == 1);
    assert_eq!(
        (counts.registrations, counts.replaced_agents),
        (2, 1),
        "{counts:?}"
    );
    assert!(
        counts.refused_agents >= 1 && counts.refused_frames == 0,
        "{counts:?}"
    );
    assert_eq!(server.agents(), 0);
    println!(
        "feagi-rust-py-libs: {} sensor frames, {} motor frames",
        counts.used_frames, counts.motor_frames
    );
}
