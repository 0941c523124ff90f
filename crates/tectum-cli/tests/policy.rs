//! Trained policies from their file to a run: `run`, `inspect`, `init`, `check`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::train::Place;

fn stderr(place: &Place, line: &str, code: i32) -> String {
    let output = place.tectum(line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{line}: {text}");
    text
}

#[test]
fn a_trained_policy_runs_is_shown_and_gets_a_contract() {
    let place = Place::new("policy");
    place.text("sample write cart-pole-policy p");
    let run = place.text("run p/cart_pole.onnx --body cart_pole --device cpu --clock sim --seconds 20 --no-plots --json");
    let summary: serde_json::Value =
        serde_json::from_str(run.lines().last().expect("a line")).expect("JSON");
    assert_eq!(summary["ticks"], 1000, "{summary}");
    let shown = place.text("inspect p/cart_pole.onnx --body cart_pole");
    for part in [
        "observation    [1, 4]  float32",
        "4610 parameters",
        "operators: Gemm 3, Tanh 2",
        "on the body cart_pole: the contract fits",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The contract that is written is the one of the sample, except for what only its author knows.
    assert_eq!(
        place.text("init p/cart_pole.onnx --body cart_pole --out own.toml"),
        "own.toml\n"
    );
    let refused = stderr(
        &place,
        "run p/cart_pole.onnx --body cart_pole --contract own.toml --device cpu --clock sim --seconds 1 --no-plots",
        2,
    );
    assert!(
        refused.contains(
            "own.toml: output action_logits [1, 2] for the 1 channels force: the sizes differ"
        ),
        "{refused}"
    );
    let filled = std::fs::read_to_string(place.0.join("own.toml"))
        .expect("written")
        .replace("# choices", "choices");
    std::fs::write(place.0.join("own.toml"), filled).expect("writable");
    place.text("run p/cart_pole.onnx --body cart_pole --contract own.toml --device cpu --clock sim --seconds 1 --no-plots");
    assert!(stderr(&place, "init p/cart_pole.onnx --out own.toml", 2).contains("own.toml exists"));
    assert!(
        stderr(&place, "run p/cart_pole.onnx", 2).contains("a policy runs on a body: --body NAME")
    );
    assert!(
        stderr(
            &place,
            "run p/cart_pole.onnx --body pendulum --device cpu",
            2
        )
        .contains("the body pendulum has")
    );
    std::fs::write(place.0.join("broken.onnx"), b"not a model").expect("writable");
    assert!(stderr(&place, "inspect broken.onnx", 3).contains("broken.onnx: not an ONNX file"));
}

/// A killed run continues from its last snapshot to the state that an undisturbed run reaches,
/// recurrent state included.
#[test]
fn a_recurrent_policy_continues_exactly_after_a_kill_within_an_episode() {
    let place = Place::new("policy-killed");
    place.text("sample write recurrent-policy p");
    let line = "run p/cart_pole_recurrent.onnx --body cart_pole --device cpu --no-plots";
    place.text(&format!("{line} --clock sim --seconds 8 --runs whole"));
    let mut run = Command::new(env!("CARGO_BIN_EXE_tectum"))
        .current_dir(&place.0)
        .args(format!("{line} --clock real --seconds 600 --runs killed").split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let (snapshot, begin) = (
        place.0.join("killed/1.partial/snapshot.safetensors"),
        Instant::now(),
    );
    while !snapshot.exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "no snapshot");
        std::thread::sleep(Duration::from_millis(50));
    }
    run.kill().expect("it can be killed");
    run.wait().expect("it ends");
    place.text("run --resume killed/1.partial --clock sim --device cpu --seconds 8 --no-plots --runs resumed");
    let [whole, resumed] = ["whole/1", "resumed/1"].map(|folder| {
        std::fs::read(place.0.join(folder).join("snapshot.safetensors")).expect("a snapshot")
    });
    assert!(whole == resumed, "the states after 8 s differ");
}

/// A file of arrays as `numpy.savez` writes it.
fn write_npz(path: &Path, arrays: &[(&str, &[f32])]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).expect("writable"));
    for (name, values) in arrays {
        let mut header = format!(
            "{{'descr': '<f4', 'fortran_order': False, 'shape': (1, {}), }}",
            values.len()
        );
        header += &" ".repeat(117 - header.len());
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        archive
            .start_file(
                format!("{name}.npy"),
                zip::write::SimpleFileOptions::default(),
            )
            .expect("an entry");
        archive.write_all(&bytes).expect("writable");
    }
    archive.finish().expect("written");
}

#[test]
fn outputs_are_compared_with_arrays() {
    let place = Place::new("policy-check");
    place.text("sample write cart-pole-policy p");
    // The first comparison prints the error of an output of zeros: far from the logits of a tilted
    // pole.
    let observation = [0.1, -0.2, 0.15, 0.4f32];
    let case = place.0.join("case.npz");
    write_npz(
        &case,
        &[
            ("observation", &observation),
            ("action_logits", &[0.0, 0.0]),
        ],
    );
    let line = "check p/cart_pole.onnx --against case.npz";
    assert!(stderr(&place, line, 1).contains("output action_logits differs from case.npz"));
    let model = tectum_onnx::Model::open(place.0.join("p/cart_pole.onnx")).expect("the sample");
    let mut network = model
        .load(&[])
        .expect("supported")
        .compile(&tectum::Device::open("cpu").expect("there"))
        .expect("it compiles");
    network
        .set_floats("observation", &observation)
        .expect("fits");
    network.run().expect("a run");
    let logits = network.floats("action_logits").expect("there").to_vec();
    write_npz(
        &case,
        &[("observation", &observation), ("action_logits", &logits)],
    );
    assert!(place.text(line).contains("same"));
    write_npz(
        &case,
        &[
            ("observation", &observation),
            ("action_logits", &[logits[0], logits[1] * 1.01]),
        ],
    );
    stderr(&place, line, 1);
    place.text(&format!("{line} --relative 0.02"));
    write_npz(&case, &[("action_logits", &logits)]);
    assert!(stderr(&place, line, 2).contains("no array \"observation\" for this input"));
    std::fs::write(&case, b"no archive").expect("writable");
    assert!(stderr(&place, line, 3).contains("case.npz"));
}

/// Messages of the format of ONNX files: fields with a length.
mod onnx {
    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    pub fn field(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
        let content = content.as_ref();
        [
            varint(number << 3 | 2),
            varint(content.len() as u64),
            content.to_vec(),
        ]
        .concat()
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        [varint(field << 3), varint(value)].concat()
    }

    /// A port of floats; digits are sizes, other texts names of dimensions.
    fn port(name: &str, dims: &[&str]) -> Vec<u8> {
        let dim = |text: &&str| match text.parse() {
            Ok(size) => field(1, number(1, size)),
            Err(_) => field(1, field(2, text)),
        };
        let shape: Vec<u8> = dims.iter().flat_map(dim).collect();
        let tensor = [number(1, 1), field(2, shape)].concat();
        [field(1, name), field(2, field(1, tensor))].concat()
    }

    /// A model of nodes, each an operator with an input and an output, from the input `x`.
    pub fn model(dims: &[&str], nodes: &[(&str, &str, &str)], outputs: &[&str]) -> Vec<u8> {
        let node = |(operator, input, output): &(&str, &str, &str)| {
            field(
                1,
                [field(1, input), field(2, output), field(4, operator)].concat(),
            )
        };
        let graph = [
            nodes.iter().flat_map(node).collect(),
            field(2, "graph"),
            field(11, port("x", dims)),
            outputs
                .iter()
                .flat_map(|name| field(12, port(name, dims)))
                .collect(),
        ]
        .concat();
        [number(1, 9), field(8, number(2, 17)), field(7, graph)].concat()
    }

    /// An entry of a file's metadata, which may follow its other fields.
    pub fn metadata(key: &str, value: &str) -> Vec<u8> {
        field(14, [field(1, key), field(2, value)].concat())
    }
}

/// A plant with a joint that an actuator drives, one that nothing drives, and a gripper.
const LEG: &str = "body leg
period 20 ms
integrate euler
state h: rad start 0.5 in -1 .. 1
state f: rad start 0.25 in -1 .. 1
input hip: rad/s in -1 .. 1
input grip: m in 0 .. 1
d/dt h = hip
d/dt f = 0 * hip
observe joint_pos_hip: rad = h in -1 .. 1
observe joint_pos_free: rad = f in -1 .. 1
";

/// Bodies are those of equation files too, for every command.
#[test]
fn contracts_are_written_and_checked_for_a_plant() {
    let place = Place::new("policy-plant");
    std::fs::write(place.0.join("leg.plant"), LEG).expect("writable");
    let file = onnx::model(&["1", "2"], &[("Neg", "x", "y")], &["y"]);
    std::fs::write(place.0.join("leg.onnx"), file).expect("writable");
    place.text("init leg.onnx --body leg.plant");
    let text = std::fs::read_to_string(place.0.join("leg.toml")).expect("written");
    for part in [
        "period = 0.02\n# The input that the terms below fill (2 numbers)".to_owned(),
        "input = \"x\"\noutput = \"y\"\n".to_owned(),
        "channels = [\"joint_pos_hip\", \"joint_pos_free\"]".to_owned(),
        "channels = [\"hip\", \"grip\"]".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    let shown = place.text("inspect leg.onnx --body leg.plant");
    assert!(
        shown.contains("on the body leg.plant: the contract fits"),
        "{shown}"
    );
    place.text("run leg.onnx --body leg.plant --device cpu --clock sim --seconds 1 --no-plots");
    assert!(stderr(&place, "init leg.onnx --body arm.plant --out a.toml", 7).contains("arm.plant"));
    assert!(stderr(&place, "inspect leg.onnx --body pendulm", 2).contains("perhaps \"pendulum\""));
}

/// What mjlab writes into a file is in its contract, and the rest is listed.
#[test]
fn init_uses_the_metadata_of_a_policy_and_lists_the_rest() {
    let place = Place::new("policy-metadata");
    std::fs::write(place.0.join("leg.plant"), LEG).expect("writable");
    let mut file = onnx::model(&["1", "2"], &[("Neg", "x", "y")], &["y"]);
    for (key, value) in [
        ("run_path", "team/run/7"),
        ("joint_names", "hip,free"),
        ("joint_stiffness", "20.000,30.000"),
        ("default_joint_pos", "0.100,-0.200"),
        ("command_names", "twist"),
        ("observation_names", "joint_pos"),
        ("observation_terms_scale", "2.000;4.000"),
        ("observation_terms_clip", "-5.000;5.000"),
        ("action_scale", "0.250,0.500"),
    ] {
        file.extend(onnx::metadata(key, value));
    }
    std::fs::write(place.0.join("leg.onnx"), file).expect("writable");
    place.text("init leg.onnx");
    let text = std::fs::read_to_string(place.0.join("leg.toml")).expect("written");
    for part in [
        "# The file's metadata that this contract does not use:\n#   command_names: twist\n#   run_path: team/run/7\n",
        "[[observation]]\nchannels = [\"joint_pos.hip\", \"joint_pos.free\"]\noffset = [0.1, -0.2]\nclip = [-5.0, 5.0]\nscale = [2.0, 4.0]\n",
        "[action]\nchannels = [\"hip\", \"free\"]\nscale = [0.25, 0.5]\noffset = [0.1, -0.2]\n",
        "[motors]\nstiffness = [20.0, 30.0]\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // With a body: its passive joint is not driven, and its gripper keeps the safe action.
    place.text("init leg.onnx --body leg.plant --out own.toml");
    let text = std::fs::read_to_string(place.0.join("own.toml")).expect("written");
    for part in [
        "channels = [\"hip\"]\npassive = [\"grip\"]\nscale = 0.25\noffset = 0.1\n".to_owned(),
        "joints free are passive".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    // A term that the body does not have is marked.
    place.text("init leg.onnx --body cart_pole --out other.toml");
    let text = std::fs::read_to_string(place.0.join("other.toml")).expect("written");
    assert!(
        text.contains("# The body cart_pole has no channel joint_pos.hip, joint_pos.free;"),
        "{text}"
    );
    // A contract in the metadata is written as it is.
    let mut file = onnx::model(&["1", "1"], &[("Neg", "x", "y")], &["y"]);
    file.extend(onnx::metadata("tectum.contract", "period = 0.5"));
    std::fs::write(place.0.join("own.onnx"), file).expect("writable");
    place.text("init own.onnx --out kept.toml");
    let text = std::fs::read_to_string(place.0.join("kept.toml")).expect("written");
    assert_eq!(
        text,
        "# The contract in the metadata of own.onnx.\nperiod = 0.5\n"
    );
}

/// Sizes without a name, an output that is listed twice, and one that is not supported.
#[test]
fn ports_that_exporters_leave_open_are_accepted() {
    let place = Place::new("policy-ports");
    let file = onnx::model(&["?", "?"], &[("Neg", "x", "y")], &["y", "y"]);
    std::fs::write(place.0.join("open.onnx"), file).expect("writable");
    write_npz(
        &place.0.join("case.npz"),
        &[("x", &[1.0, 2.0, 3.0]), ("y", &[-1.0, -2.0, -3.0])],
    );
    assert!(
        place
            .text("check open.onnx --against case.npz")
            .contains("same")
    );
    let shown = place.text("inspect open.onnx --dim x.1=3");
    assert!(shown.contains("[1, 3]"), "{shown}");
    let nodes = [("Neg", "x", "y"), ("StringNormalizer", "y", "noise")];
    let file = onnx::model(&["1", "3"], &nodes, &["noise", "y"]);
    std::fs::write(place.0.join("texts.onnx"), file).expect("writable");
    assert!(
        place
            .text("check texts.onnx --against case.npz")
            .contains("same")
    );
    let shown = place.text("inspect texts.onnx");
    assert!(
        shown.contains("noise  not supported") && shown.contains("y      [1, 3]"),
        "{shown}"
    );
    assert!(stderr(&place, "inspect texts.onnx", 0).contains(
        "warning: output noise is left out: node 1 (StringNormalizer, opset 17): the operator is not supported"
    ));
    assert!(stderr(&place, "check texts.onnx", 4).contains("StringNormalizer"));
    place.text("init texts.onnx");
    let text = std::fs::read_to_string(place.0.join("texts.toml")).expect("written");
    assert!(text.contains("output = \"y\"\n"), "{text}");
}
