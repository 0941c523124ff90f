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
