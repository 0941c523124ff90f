//! Every command that runs something has a receipt, marks software devices, and reports if nothing
//! was executed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tectum-receipts-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(
            folder.join("tiny.json"),
            include_str!("../../tectum-spiking/samples/sample-genome.json"),
        )
        .expect("writable");
        Self(folder)
    }

    /// Standard output and error of a command that works; that of a field may end with its verdict.
    fn text(&self, line: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_tectum"))
            .current_dir(&self.0)
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .output();
        let output = output.expect("it starts");
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let is_verdict = line.starts_with("check field") && output.status.code() == Some(1);
        assert!(output.status.success() || is_verdict, "{line}: {text}");
        text.into_owned()
    }
}

impl Place {
    /// The line of JSON that a command prints.
    fn json(&self, line: &str) -> Value {
        let text = self.text(line);
        serde_json::from_str(
            text.lines()
                .find(|line| line.starts_with('{'))
                .expect("a line of JSON"),
        )
        .expect("JSON")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn model(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tectum-transformer/models")
        .join(name);
    folder.canonicalize().expect("there").display().to_string()
}

/// A device other than the CPU, if there is one: software Vulkan on the development machine.
fn vulkan() -> Option<tectum::Device> {
    let device = tectum::Device::open_if_present("vulkan:0").expect("absent or usable");
    if device.is_none() {
        println!("skipped: no Vulkan device");
    }
    device
}

#[test]
fn every_run_has_a_receipt_and_names_software() {
    let place = Place::new("all");
    super::train::record(&place.0.join("rig.csv"), 5000);
    std::fs::write(
        place.0.join("one.atlas"),
        "buffer y: u32 write\nmov_imm.u32 r0, 1\nstg.u32 [y], r0",
    )
    .expect("writable");
    let (encoder, decoder) = (model("sample-encoder"), model("sample-decoder"));
    let commands = [
        ("run tiny.json --bursts 20".to_owned(), true),
        ("run one.atlas --size y=64".to_owned(), true),
        (
            "run cart_pole --brain field --clock sim --seconds 0.2 --no-plots".to_owned(),
            true,
        ),
        (
            "check field --cells 8 --channels 32 --compared 1 --every 2".to_owned(),
            true,
        ),
        (
            "train twin rig.csv -o twin.safetensors --members 1 --steps 20".to_owned(),
            true,
        ),
        (format!("embed {encoder} cat"), true),
        (format!("generate {decoder} cat --tokens 3"), true),
        ("train rig rig.csv".to_owned(), false),
        ("check rig --seeds 1".to_owned(), false),
        (format!("check cache {encoder} --text rig.csv"), true),
    ];
    let devices = std::iter::once("cpu".to_owned()).chain(vulkan().map(|_| "vulkan:0".to_owned()));
    for (device, (command, on_device)) in devices.flat_map(|device| {
        commands
            .iter()
            .map(move |command| (device.clone(), command))
    }) {
        let line = format!(
            "{command} --receipt receipt.json{}",
            if *on_device {
                format!(" --device {device}")
            } else {
                String::new()
            }
        );
        let told = place.text(&line);
        let receipt: Value = serde_json::from_str(
            &std::fs::read_to_string(place.0.join("receipt.json")).expect("written"),
        )
        .expect("JSON");
        let ran_on = if *on_device { &device } else { "cpu" };
        assert_eq!(
            (receipt["schema"].as_str(), receipt["device"]["id"].as_str()),
            (Some("tectum.receipt/3"), Some(ran_on)),
            "{line}"
        );
        assert!(
            receipt["runs"].as_u64() > Some(0) && told.contains(ran_on),
            "{line}: {told}"
        );
        assert_eq!(
            receipt["totals"]["launches"].as_u64() > Some(0),
            *on_device,
            "{line}: {receipt}"
        );
        assert_eq!(
            !receipt["code"].as_array().expect("a list").is_empty(),
            *on_device,
            "{line}: {receipt}"
        );
        assert_eq!(
            told.contains(", software)"),
            receipt["device"]["software"] == true,
            "{line}: {told}"
        );
        let read: Vec<&str> = receipt["inputs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|input| input["path"].as_str().expect("named"))
            .collect();
        let named = command.split(' ').filter(|word| {
            ["tiny.json", "one.atlas", "rig.csv", &encoder, &decoder].contains(word)
        });
        named.for_each(|named| {
            assert!(
                read.iter().any(|path| path.starts_with(named)),
                "{line}: {named} is not among {read:?}"
            )
        });
        std::fs::remove_file(place.0.join("receipt.json")).expect("there");
    }
}

#[test]
fn commands_without_a_receipt_of_their_own_mark_software() {
    let Some(device) = vulkan() else { return };
    let place = Place::new("marks");
    let (encoder, decoder) = (model("sample-encoder"), model("sample-decoder"));
    for (line, pointer) in [
        (
            "explain tiny.json --device vulkan:0".to_owned(),
            "/shards/0/software",
        ),
        (format!("explain {decoder} --device vulkan:0"), "/software"),
        ("explain route add:1k".to_owned(), "/devices/1/software"),
        ("devices".to_owned(), "/devices/2/software"),
        (
            "bench core --rows core.fill --rounds 1 --peers none --device vulkan:0".to_owned(),
            "/receipt/device/software",
        ),
        (format!("bench {encoder} --device vulkan:0"), "/software"),
    ] {
        let text = place.text(&line);
        assert!(
            text.contains("vulkan:0") && text.contains("software") == device.info().software,
            "{line}: {text}"
        );
        let json = place.json(&format!("{line} --json"));
        assert_eq!(
            json.pointer(pointer),
            Some(&Value::Bool(device.info().software)),
            "{line}: {json}"
        );
    }
}

#[test]
fn the_null_device_says_that_nothing_was_executed() {
    let place = Place::new("null");
    for (line, json) in [
        (
            "run tiny.json --bursts 20 --device null".to_owned(),
            "bursts_per_s",
        ),
        (
            format!(
                "generate {} cat --tokens 3 --device null",
                model("sample-decoder")
            ),
            "decode",
        ),
        (
            format!("embed {} cat --device null", model("sample-encoder")),
            "",
        ),
    ] {
        let told = place.text(&line);
        assert!(told.contains("nothing was executed"), "{line}: {told}");
        assert!(
            !told.contains("a second") && !told.contains("tokens/s"),
            "{line}: {told}"
        );
        if !json.is_empty() {
            let result = place.json(&format!("{line} --json"));
            let rate = if json == "decode" {
                &result["decode"]["tokens_per_s"]
            } else {
                &result[json]
            };
            assert!(
                rate.is_null() && result["receipt"]["device"]["id"] == "null",
                "{line}: {result}"
            );
        }
    }
}

#[test]
fn a_receipt_is_derived_again_and_a_run_repeated() {
    let place = Place::new("check");
    let summary = place.json(
        "run cart_pole --brain field --clock sim --seconds 0.4 --no-plots --device cpu --json",
    );
    let folder = summary["run_folder"].as_str().expect("a folder").to_owned();
    let check = place.json(&format!("receipt check {folder} --rerun --json"));
    let verdicts = |check: &Value| {
        check["code"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|code| code["verdict"].as_str().expect("one").to_owned())
            .collect::<Vec<_>>()
    };
    assert!(
        verdicts(&check).len() >= 5 && verdicts(&check).iter().all(|verdict| verdict == "same"),
        "{check}"
    );
    assert!(
        check["code"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|code| code["form"] == "native"),
        "{check}"
    );
    assert_eq!(
        (&check["trace"]["verdict"], &check["trace"]["ticks"]),
        (&Value::from("same"), &Value::from(20)),
        "{check}"
    );
    // The kernels of this build are known without a repetition.
    assert_eq!(
        verdicts(&place.json(&format!("receipt check {folder} --json"))),
        verdicts(&check)
    );

    let path = place.0.join(&folder).join("receipt.json");
    let whole = std::fs::read_to_string(&path).expect("there");
    let receipt: Value = serde_json::from_str(&whole).expect("JSON");
    let refused = |change: &dyn Fn(&mut Value), options: &str| {
        let mut changed = receipt.clone();
        change(&mut changed);
        std::fs::write(&path, changed.to_string()).expect("writable");
        let output = Command::new(env!("CARGO_BIN_EXE_tectum"))
            .current_dir(&place.0)
            .args(["receipt", "check", &folder])
            .args(options.split_whitespace())
            .output();
        let output = output.expect("it starts");
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text.into_owned())
    };
    let (code, text) = refused(
        &|receipt| receipt["code"][0]["hash"] = Value::from("0".repeat(64)),
        "",
    );
    assert!(
        code == Some(1) && text.contains("DIFFERS") && text.contains("1 hashes differ"),
        "{text}"
    );
    let (code, text) = refused(
        &|receipt| receipt["trace"] = Value::from("0".repeat(64)),
        "--rerun",
    );
    assert!(
        code == Some(1) && text.contains("trace of 20 ticks on cpu: DIFFERS"),
        "{text}"
    );
    let (code, text) = refused(
        &|receipt| receipt["schema"] = Value::from("tectum.receipt/2"),
        "",
    );
    assert!(
        code == Some(3) && text.contains("this build checks tectum.receipt/3"),
        "{text}"
    );
    let (code, text) = refused(
        &|receipt| receipt["recovery_count"] = Value::from(1),
        "--rerun",
    );
    assert!(
        code == Some(2) && text.contains("faults were injected or happened"),
        "{text}"
    );
}
