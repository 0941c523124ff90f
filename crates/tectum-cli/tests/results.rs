//! Results as files that other programs read, and what the command says of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const TINY: &str = include_str!("../../tectum-spiking/samples/sample-genome.json");

/// A folder for the test, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-results-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        std::fs::write(path.join("tiny.json"), TINY).expect("writable");
        Self(path)
    }

    fn tectum(&self, line: &str) -> Output {
        self.command(line).output().expect("the binary starts")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        command
            .env("NODEVICE_SELECT", "1")
            .env("XDG_CACHE_HOME", self.0.join("cache"));
        command
            .args(line.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    /// What a command that succeeds prints on standard output and on standard error.
    fn shown(&self, line: &str) -> [String; 2] {
        let output = self.tectum(line);
        let shown = [text(&output.stdout), text(&output.stderr)];
        assert!(output.status.success(), "{line}: {}", shown[1]);
        shown
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.shown(line)[0]).expect("JSON alone")
    }

    fn read(&self, name: &str) -> String {
        text(&self.bytes(name))
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).expect("there")
    }

    /// The header of an array and the bytes of its elements.
    fn array(&self, name: &str) -> (String, Vec<u8>) {
        let bytes = self.bytes(name);
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"), "{name}");
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert!(
            start.is_multiple_of(64) && bytes[start - 1] == b'\n',
            "{name}"
        );
        (text(&bytes[10..start]), bytes[start..].to_vec())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn model(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tectum-transformer/models")
        .join(name)
        .display()
        .to_string()
}

#[test]
fn a_name_that_promises_another_format_is_refused_before_anything_is_done() {
    let place = Place::new("endings");
    std::fs::write(
        place.0.join("one.atlas"),
        "buffer y: u32 write\nmov_imm.u32 r0, 1\nstg.u32 [y], r0",
    )
    .expect("writable");
    let encoder = model("sample-encoder");
    for (line, expected) in [
        (
            "run tiny.json --receipt r.csv",
            "--receipt r.csv: what is written is not csv; a name that ends in .json is needed",
        ),
        (
            "run tiny.json --snapshot state.json",
            "--snapshot state.json: what is written is not json; a name that ends in .safetensors is needed",
        ),
        (
            "run tiny.json --record spikes.npy",
            "a name that ends in .mcap is needed",
        ),
        (
            "run tiny.json --spikes spikes.parquet",
            "--spikes spikes.parquet: what is written is not parquet; a name that ends in .npy or .csv is needed",
        ),
        (
            "run one.atlas --size y=64 --out y=y.csv",
            "--out y.csv: what is written is not csv; a name that ends in .npy is needed",
        ),
        (
            "train twin rig.csv -o twin.npz",
            "a name that ends in .safetensors is needed",
        ),
        (
            "train twin rig.csv -o twin.safetensors --plot curve.pdf",
            "--plot curve.pdf: what is written is not pdf; a name that ends in .png or .svg",
        ),
        (
            "recover broken.mcap whole.csv",
            "a name that ends in .mcap is needed",
        ),
        (
            "scenario write pendulum --out pendulum.json",
            "a name that ends in .toml is needed",
        ),
        (
            &format!("embed {encoder} cat --out v.csv"),
            "--out v.csv: what is written is not csv; a name that ends in .npy is needed",
        ),
        (
            "export runs/1 --out trace.xlsx",
            "a name that ends in .csv or .npy is needed",
        ),
        (
            &format!("embed {encoder} cat --out v"),
            "--out v: a name that ends in .npy is needed",
        ),
        (
            "run tiny.json --receipt r",
            "--receipt r: a name that ends in .json is needed",
        ),
    ] {
        let output = place.tectum(line);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{line}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(expected) && output.stdout.is_empty(),
            "{line}: {}",
            text(&output.stderr)
        );
        assert_eq!(
            text(&output.stderr).lines().count(),
            1,
            "{line}: the message alone: {}",
            text(&output.stderr)
        );
    }
    // A folder that takes no file is found before anything is computed or written.
    std::fs::create_dir(place.0.join("folder.json")).expect("writable");
    for (line, expected) in [
        (
            &*format!("embed {encoder} cat --out nodir/v.npy"),
            "error: --out nodir/v.npy: the folder nodir does not exist\n",
        ),
        (
            &format!("embed {encoder} cat --out v.npy --receipt /nodir/r.json"),
            "error: --receipt /nodir/r.json: the folder /nodir does not exist\n",
        ),
        (
            &format!("embed {encoder} cat --receipt folder.json"),
            "error: --receipt folder.json: ",
        ),
        (
            "run one.atlas --size y=64 --out y=y.npy --receipt nodir/r.json",
            "error: --receipt nodir/r.json: the folder nodir does not exist\n",
        ),
        (
            "run one.atlas --size y=64 --out y=nodir/y.npy --receipt r.json",
            "error: --out: nodir/y.npy: the folder nodir does not exist\n",
        ),
        (
            "run tiny.json --bursts 5 --spikes nodir/s.csv",
            "error: --spikes nodir/s.csv: the folder nodir does not exist\n",
        ),
        (
            "train plant cart_servo.plant rig.csv -o nodir/out.plant",
            "error: --output nodir/out.plant: the folder nodir does not exist\n",
        ),
    ] {
        let output = place.tectum(line);
        assert_eq!(
            output.status.code(),
            Some(7),
            "{line}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).starts_with(expected) && output.stdout.is_empty(),
            "{line}: {}",
            text(&output.stderr)
        );
    }
    let left: Vec<_> = std::fs::read_dir(&place.0)
        .expect("there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    assert!(left.iter().all(|name| ["tiny.json", "one.atlas", "cache", "folder.json"].contains(&name.as_str())), "{left:?}");
}

#[test]
fn every_spike_is_a_row_and_the_areas_have_a_table() {
    let place = Place::new("spikes");
    let run = "run tiny.json --bursts 200 --stimulus 0.1 --device cpu --quiet --json";
    let report = place.json(&format!("{run} --spikes s.npy"));
    place.json(&format!("{run} --spikes s.csv"));
    let spikes = report["spikes"].as_u64().expect("a number");
    assert_eq!(report["spike_hash"], place.json(run)["spike_hash"]);
    let (head, elements) = place.array("s.npy");
    assert!(
        head.starts_with(&format!(
            "{{'descr': '<u4', 'fortran_order': False, 'shape': ({spikes}, 2), }}"
        )),
        "{head}"
    );
    let numbers: Vec<u32> = elements
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    let rows: Vec<&[u32]> = numbers.chunks(2).collect();
    assert_eq!(rows.len() as u64, spikes);
    assert!(
        rows.is_sorted()
            && rows
                .iter()
                .all(|row| (1..=200).contains(&row[0]) && row[1] < 128)
    );
    let area = |neuron: u32| if neuron < 64 { "i__inp" } else { "c__mid" };
    let expected: String = rows
        .iter()
        .map(|row| format!("{},{},{}\n", row[0], row[1], area(row[1])))
        .collect();
    assert!(place.read("s.csv") == "burst,neuron,area\n".to_owned() + &expected);
    let areas = "area,name,role,first_neuron,neurons,size_x,size_y,size_z,per_voxel\ni__inp,in,input,0,64,8,8,1,1\nc__mid,mid,custom,64,64,8,8,1,1\n";
    assert_eq!([place.read("s.areas.csv")], [areas]);
    assert!(
        text(&place.tectum("run pendulum --spikes s.npy").stderr)
            .contains("--spikes is for genomes")
    );
}

#[test]
fn vectors_go_into_an_array_with_their_speed_and_a_warning_for_what_was_cut() {
    let place = Place::new("vectors");
    let encoder = model("sample-encoder");
    let long = vec!["cat"; 200].join(" ");
    let run = |more: &[&str]| {
        let output = place
            .command(&format!("embed {encoder} --device cpu --out v.npy"))
            .args(["a small dog", &long])
            .args(more)
            .output();
        let output = output.expect("the binary starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        [text(&output.stdout), text(&output.stderr)]
    };
    let [shown, said] = run(&["--json"]);
    assert!(
        said.contains("warning: text 2: 202 tokens, cut to the 128 that the model takes"),
        "{said}"
    );
    let report: Value = serde_json::from_str(&shown).expect("JSON alone");
    let rows = report["embeddings"].as_array().expect("a list");
    assert_eq!(
        (
            rows[0]["cut_tokens"].as_u64(),
            rows[1]["cut_tokens"].as_u64()
        ),
        (Some(0), Some(74))
    );
    let (head, elements) = place.array("v.npy");
    assert!(
        head.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, "),
        "{head}"
    );
    let numbers: Vec<f64> = elements
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
        .collect();
    let expected = rows
        .iter()
        .flat_map(|row| row["embedding"].as_array().expect("numbers"))
        .filter_map(Value::as_f64);
    assert!(
        numbers.len() > 2
            && numbers
                .iter()
                .zip(expected)
                .all(|(written, shown)| (written - shown).abs() < 1e-6)
    );
    let rate = &report["rate"];
    let (tokens, seconds, per_s) = (
        rate["tokens"].as_f64().expect("a number"),
        rate["seconds"].as_f64().expect("a number"),
        rate["tokens_per_s"].as_f64(),
    );
    assert_eq!(
        tokens as usize,
        rows.iter()
            .map(|row| row["tokens"].as_array().expect("a list").len())
            .sum::<usize>()
    );
    assert!(
        (per_s.expect("a number") - tokens / seconds).abs() < 1e-6 * tokens / seconds,
        "{rate}"
    );
    // The vectors are in the file: one line says so, and nothing with --quiet.
    let [shown, said] = run(&[]);
    assert_eq!(shown, "2 vectors of 64 to v.npy\n");
    assert!(
        said.lines()
            .any(|line| line.contains(" tokens in ") && line.ends_with(" tokens/s)")),
        "{said}"
    );
    let [shown, said] = run(&["--quiet"]);
    assert!(
        shown.is_empty() && said.lines().count() == 1 && said.starts_with("warning: text 2: "),
        "{shown}{said}"
    );
}

#[test]
fn texts_are_lines_of_a_file_or_of_the_standard_input() {
    let place = Place::new("texts");
    let (encoder, decoder) = (model("sample-encoder"), model("sample-decoder"));
    let lines = format!(
        "a cat\r\n\n{}\n  \n{}",
        "long ".repeat(40),
        "a dog\n".repeat(7)
    );
    std::fs::write(place.0.join("lines.txt"), &lines).expect("writable");
    let piped = |line: &str| {
        let mut command = place.command(line);
        command.stdin(std::fs::File::open(place.0.join("lines.txt")).expect("there"));
        let output = command.output().expect("the binary starts");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        [text(&output.stdout), text(&output.stderr)]
    };
    let embed = format!("embed {encoder} --device cpu");
    let [shown, said] = place.shown(&format!("{embed} --file lines.txt"));
    assert!(said.starts_with("warning: 2 of 11 texts are blank, the first is text 2; their vectors are that of an empty text\n"), "{said}");
    assert!(
        shown.starts_with("[1] \"a cat\", ")
            && shown.contains(&format!("\n[3] \"{}…\", ", &"long ".repeat(40)[..72])),
        "{shown}"
    );
    assert!(
        shown.contains("\n[11] \"a dog\", ") && !shown.contains("cosine"),
        "{shown}"
    );
    for line in ["", " -", " --file -"] {
        assert_eq!(piped(&format!("{embed}{line}"))[0], shown, "{line:?}");
    }
    // Cosines of few texts alone; results alone with --quiet.
    assert_eq!(
        place.json(&format!("{embed} --file lines.txt --json"))["similarity"],
        Value::Null
    );
    assert_eq!(
        place.json(&format!("{embed} a b --json"))["similarity"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let [shown, said] = place.shown(&format!("{embed} a b --quiet"));
    assert!(
        shown.contains("\ncosine  1         2\n1       1.000000  ")
            && shown.ends_with("1.000000\n")
            && said.is_empty(),
        "{shown}{said}"
    );
    let [shown, said] = place.shown(&format!("{embed} lines.txt"));
    assert!(
        shown.starts_with("[1] \"lines.txt\", ")
            && said.starts_with(
                "note: \"lines.txt\" is the text itself, and also a file: --file lines.txt "
            ),
        "{said}"
    );
    assert!(said.contains(": 1 run, "), "{said}");
    // The whole file is one prompt, without its last line break.
    let generate = format!("generate {decoder} --tokens 2 --device cpu --json");
    let made = |[shown, _]: [String; 2]| {
        serde_json::from_str::<Value>(&shown).expect("JSON")["prompt_ids"].clone()
    };
    let given = place
        .command(&generate)
        .arg(lines.trim_end_matches('\n'))
        .output()
        .expect("the binary starts");
    let given = made([text(&given.stdout), String::new()]);
    for line in ["", " -", " --file -", " --file lines.txt"] {
        assert_eq!(made(piped(&format!("{generate}{line}"))), given, "{line:?}");
    }
    let [_, said] = place.shown(&format!("generate {decoder} lines.txt --tokens 2"));
    assert!(
        said.contains("--file lines.txt continues its text"),
        "{said}"
    );
    for (line, code, message) in [
        (
            embed.clone(),
            2,
            "embed: no text was given, neither as an argument, by --file, nor as a line of the standard input",
        ),
        (
            format!("{embed} a --file lines.txt"),
            2,
            "cannot be used with",
        ),
        (format!("{embed} --file nowhere.txt"), 7, "nowhere.txt"),
        (
            format!("{generate} a --file lines.txt"),
            2,
            "cannot be used with",
        ),
    ] {
        let output = place.tectum(&line);
        assert!(
            text(&output.stderr).contains(message) && output.status.code() == Some(code),
            "{line}: {}",
            text(&output.stderr)
        );
    }
}

/// What has no effect is noted; the penalty has one without a temperature.
#[test]
fn options_of_draws_without_a_temperature_are_noted() {
    let place = Place::new("greedy");
    let generate = format!(
        "generate {} cat --tokens 2 --device cpu",
        model("sample-decoder")
    );
    for (options, note) in [
        (
            "--seed 7",
            "greedy: --seed has no effect without --temperature\n",
        ),
        (
            "--top-k 4 --top-p 0.5 --seed 7",
            "greedy: --top-k, --top-p, --seed have no effect without --temperature\n",
        ),
    ] {
        assert!(
            place.shown(&format!("{generate} {options}"))[1].contains(note),
            "{options}"
        );
        assert!(
            !place.shown(&format!("{generate} {options} --temperature 1"))[1].contains("greedy"),
            "{options}"
        );
    }
    let ids = |options: &str| {
        place.json(&format!("{generate} --tokens 24 --json {options}").replace("--tokens 2 ", ""))["ids"].clone()
    };
    assert_ne!(ids("--repetition-penalty 2"), ids(""));
    assert!(!place.shown(&format!("{generate} --repetition-penalty 2"))[1].contains("greedy"));
}

#[test]
fn every_period_of_a_run_is_exported_with_names_and_units() {
    let place = Place::new("export");
    place.shown("run gym_pendulum --brain lqr --clock sim --seconds 2 --no-plots --quiet");
    let [shown, _] = place.shown("export runs/1");
    for line in [
        "angle       rad    observation",
        "torque      N m    action",
        "runs/1/trace.csv: 40 rows",
        "runs/1/trace.npy: 40 rows",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    let csv = place.read("runs/1/trace.csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0],
        [
            "tick",
            "time_s",
            "angle",
            "speed",
            "torque",
            "angle_rad",
            "reward",
            "held",
            "fallback",
            "terminated"
        ]
    );
    assert_eq!(
        (rows.len(), &rows[3][..2], &rows[3][7..]),
        (41, &["2", "0.1"][..], &["false", "false", "false"][..])
    );
    // The same numbers in the array: a count, six numbers, three flags.
    let (head, elements) = place.array("runs/1/trace.npy");
    assert!(
        head.contains("('tick', '<u8'), ('time_s', '<f8'), ('angle', '<f8')")
            && head.contains("('held', '|b1')")
            && head.contains("'shape': (40,)")
    );
    assert_eq!(elements.len(), 40 * (7 * 8 + 3));
    for (row, record) in rows[1..].iter().zip(elements.chunks(59)) {
        let numbers: Vec<f64> = record[8..56]
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        let expected: Vec<f64> = row[1..7]
            .iter()
            .map(|cell| cell.parse().expect("a number"))
            .collect();
        assert_eq!(numbers, expected);
    }
    let total: f64 = rows[1..]
        .iter()
        .map(|row| row[6].parse::<f64>().expect("a number"))
        .sum();
    let summary: Value = serde_json::from_str(&place.read("runs/1/summary.json")).expect("JSON");
    assert!((total - summary["return"].as_f64().expect("a number")).abs() < 1e-9);
    let report = place.json("export runs/1/trace.mcap --out other.csv --json");
    assert_eq!(
        (report["rows"].as_u64(), &report["files"]),
        (Some(40), &serde_json::json!(["other.csv"]))
    );
    assert_eq!(place.read("other.csv"), csv);
    place.shown("run tiny.json --bursts 5 --record spikes.mcap --quiet");
    for (line, code, message) in [
        ("export runs/7", 7, "runs/7"),
        (
            "export spikes.mcap",
            3,
            "spikes.mcap: it has no period of a run",
        ),
        ("export tiny.json", 3, "tiny.json"),
    ] {
        let output = place.tectum(line);
        assert!(
            text(&output.stderr).contains(message) && output.status.code() == Some(code),
            "{line}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn json_is_alone_on_standard_output() {
    let place = Place::new("json");
    std::fs::write(
        place.0.join("one.atlas"),
        "buffer y: u32 write\nmov_imm.u32 r0, 1\nstg.u32 [y], r0",
    )
    .expect("writable");
    super::train::record(&place.0.join("rig.csv"), 5000);
    let (encoder, decoder) = (model("sample-encoder"), model("sample-decoder"));
    place.shown("run cart_pole --brain zero --clock sim --seconds 1 --no-plots --quiet");
    for line in [
        "run cart_pole --brain zero --clock sim --seconds 1 --no-plots --json",
        "run tiny.json --bursts 5 --json",
        "run one.atlas --size y=64 --json",
        "devices --json",
        "check one.atlas --json",
        "check field --cells 4 --channels 32 --compared 1 --json",
        "check field --learning --cells 4 --channels 32 --seeds 1 --steps 10 --json",
        "explain route add:1k --json",
        "explain tiny.json --json",
        &format!("explain {encoder} --json"),
        "inspect tiny.json --json",
        &format!("inspect {decoder} --json"),
        &format!("embed {encoder} cat --json"),
        &format!("generate {decoder} cat dog --tokens 2 --json"),
        "train rig rig.csv --json",
        "train twin rig.csv -o twin.safetensors --members 1 --steps 2 --json",
        "inspect twin.safetensors --json",
        "receipt check runs/1 --json",
        "recover runs/1/trace.mcap whole.mcap --json",
        "export runs/1 --json",
        "scenario list --json",
        "sample list --json",
    ] {
        let [shown, _] = place.shown(line);
        assert!(
            !shown.is_empty()
                && shown
                    .lines()
                    .all(|line| serde_json::from_str::<Value>(line).is_ok()),
            "{line}: {shown}"
        );
    }
}

#[test]
fn a_pole_that_falls_is_judged_by_its_falls() {
    let place = Place::new("falls");
    let run = "run cart_pole --brain zero --clock sim --seconds 20 --no-plots";
    let summary = place.json(&format!("{run} --quiet --json"));
    let falls = summary["falls"].as_u64().expect("a number");
    assert!(
        falls > 20
            && summary["upright_fraction"].is_null()
            && summary["time_to_upright_s"].is_null(),
        "{summary}"
    );
    assert_eq!(
        (
            summary["episodes"].as_u64(),
            summary["ended_episodes"].as_u64()
        ),
        (Some(falls + 1), Some(falls))
    );
    let of_episode = ["min", "mean", "max"]
        .map(|key| summary["episode_return"][key].as_f64().expect("a number"));
    assert!(
        of_episode.is_sorted() && of_episode[0] >= 5.0 && of_episode[2] < 30.0,
        "{of_episode:?}"
    );
    let [shown, _] = place.shown(run);
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("falls ") && line.ends_with(&format!(" {falls}")))
            && !shown.contains("upright"),
        "{shown}"
    );
    assert!(
        shown.contains(&format!(
            "1000.000 in {} episodes; {falls} ended by the body: {:.3} to ",
            falls + 1,
            of_episode[0]
        )),
        "{shown}"
    );
    assert!(
        shown.contains("0 N is no action of force; the body applies 10 N"),
        "{shown}"
    );
    // What is left of the episode when a run is interrupted counts in the resumed one.
    place.shown(&format!(
        "{} --quiet",
        run.replace("--seconds 20", "--seconds 7.5")
    ));
    let resumed =
        place.json("run --resume runs/3 --seconds 20 --clock sim --no-plots --quiet --json");
    assert_eq!(
        (&resumed["falls"], &resumed["episode_return"]),
        (&summary["falls"], &summary["episode_return"])
    );
    // A body that hangs at first is judged by how long it is upright.
    let [shown, _] =
        place.shown("run gym_pendulum --brain zero --clock sim --seconds 2 --no-plots");
    for part in [
        "fraction upright    0.0 %",
        "deadline misses     none of 40: time is simulated",
        "; period 50 ms",
        " in 1 episode\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("fallback"), "{shown}");
}

#[test]
fn late_answers_and_recoveries_are_told_with_what_they_cost() {
    let place = Place::new("costs");
    let [shown, _] = place
        .shown("run gym_pendulum --brain lqr --seconds 2 --no-plots --clock real --inject slow@1");
    let misses = shown
        .lines()
        .find(|line| line.starts_with("deadline misses"))
        .expect("a row");
    assert!(
        misses.ends_with(" of 40 late: held the last action"),
        "{shown}"
    );
    let mppi = "[body]\nname = \"pendulum\"\n[brain]\nname = \"mppi\"\nmodel = \"plant\"\nsamples = 64\nhorizon = 8\n[loop]\nseconds = 3\nclock = \"sim\"\n";
    std::fs::write(place.0.join("plan.toml"), mppi).expect("writable");
    let run = "run plan.toml --no-plots --inject nan@1";
    let [shown, _] = place.shown(&format!("{run} --device cpu"));
    let sentence = "tick 20 (injected): the brain continued at tick 21 on cpu with its state before tick 16: 5 ticks lost; 1 tick passed without the brain";
    assert!(
        shown.contains(sentence) && !shown.contains("until tick"),
        "{shown}"
    );
    if !text(&place.tectum("devices --json").stdout).contains("\"vulkan:0\"") {
        return println!("skipped: no vulkan:0: percentiles of each device");
    }
    let [shown, _] = place.shown(&format!("{run} --device vulkan:0"));
    for part in [
        " until tick 21, then cpu\n",
        "\n  of vulkan:0       p50 ",
        "\n  of cpu            p50 ",
        "the brain continued at tick 21 on cpu with its state before",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let summary = place.json(&format!("{run} --device vulkan:0 --quiet --json"));
    let devices = summary["devices"].as_array().expect("a list");
    let of = |key: &str| {
        devices
            .iter()
            .map(|used| used[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("device"), of("from_tick")),
        (
            vec!["vulkan:0".into(), "cpu".into()],
            vec![0.into(), 21.into()]
        )
    );
    assert!(
        devices
            .iter()
            .all(|used| used["tick_ms"]["p50"].as_f64() > Some(0.0)),
        "{summary}"
    );
}

/// A memory that keeps what an input area does.
const REMEMBERING: &str = r#"{"version": "2.1", "physiology": {"simulation_timestep": 0.025}, "blueprint": {
"eye___": {"group_id": "IPU", "block_boundaries": [1, 1, 9], "mp_charge_accumulation": false, "firing_threshold": 5,
           "cortical_mapping_dst": {"m__seq": [["episodic_memory", 1, 1, false]], "arm___": [["projector", 1, 1, false]]}},
"m__seq": {"group_id": "MEMORY", "block_boundaries": [1, 1, 1], "mp_charge_accumulation": false},
"arm___": {"group_id": "OPU", "block_boundaries": [1, 1, 9], "mp_charge_accumulation": false}}}"#;

#[test]
fn a_genome_is_inspected_with_the_counts_of_its_run_and_told_that_nothing_feeds_it() {
    let place = Place::new("counts");
    std::fs::write(place.0.join("memory.json"), REMEMBERING).expect("writable");
    for genome in ["tiny.json", "memory.json"] {
        let (inspected, ran) = (
            place.json(&format!("inspect {genome} --json")),
            place.json(&format!(
                "run {genome} --bursts 5 --device cpu --quiet --json"
            )),
        );
        assert_eq!(
            (&inspected["run"]["neurons"], &inspected["run"]["synapses"]),
            (&ran["neurons"], &ran["synapses"]),
            "{genome}"
        );
        let [shown, _] = place.shown(&format!("inspect {genome}"));
        let expected = format!("a run has {} neurons", ran["neurons"]);
        assert!(
            shown
                .lines()
                .last()
                .is_some_and(|line| line.starts_with(&expected)
                    && line.ends_with(&format!(" {} synapses", ran["synapses"]))),
            "{shown}"
        );
        assert!(
            ran["notes"]
                .as_array()
                .is_some_and(|notes| notes.iter().any(|note| note
                    .as_str()
                    .is_some_and(|note| note.starts_with("no input: ")))),
            "{ran}"
        );
    }
    assert_eq!(
        place.json("inspect memory.json --json")["run"]["memory_neurons"],
        1024
    );
    let [shown, _] = place.shown("run tiny.json --bursts 5 --device cpu");
    let note = "note: no input: nothing reached the 64 neurons of the input areas (i__inp); --stimulus 0.1 stimulates a tenth of them at random in each burst";
    assert!(shown.lines().any(|line| line == note), "{shown}");
    // Below the threshold of 5 a stimulus has no effect; its size can be set.
    let fed = |more: &str| {
        place.json(&format!(
            "run memory.json --bursts 50 --stimulus 0.5 {more} --device cpu --quiet --json"
        ))
    };
    assert_eq!(
        (
            fed("")["spikes"].as_u64(),
            fed("--amplitude 4.9")["spikes"].as_u64()
        ),
        (Some(0), Some(0))
    );
    let report = fed("--amplitude 5");
    assert!(
        report["spikes"].as_u64() > Some(100) && !report["notes"].to_string().contains("no input"),
        "{report}"
    );
    for (line, message) in [
        ("run memory.json --amplitude 5", "--stimulus"),
        (
            "run memory.json --stimulus 0.5 --amplitude inf",
            "--amplitude: an amplitude of inf; a finite number is needed",
        ),
        (
            "run memory.json --stimulus 0.5 --amplitude 5000 --device cpu",
            "--amplitude: an injection of 5000 into each stimulated neuron; the maximum is 1024 either way",
        ),
    ] {
        let output = place.tectum(line);
        assert!(
            text(&output.stderr).contains(message) && output.status.code() == Some(2),
            "{line}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn each_sample_is_written_once_and_is_read_by_its_command() {
    let place = Place::new("samples");
    let list = place.json("sample list --json");
    let list = list.as_array().expect("a list");
    let names: Vec<&str> = list
        .iter()
        .filter_map(|sample| sample["name"].as_str())
        .collect();
    let (plants, others): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| name.ends_with(".plant"));
    let known = [
        "sample-genome",
        "sample-recording",
        "ros-recording",
        "cart-pole-policy",
        "recurrent-policy",
        "locomotion-policy",
        "act-policy",
        "hopper-policy",
        "sample-encoder",
        "sample-decoder",
        "sample-gguf",
        "sample-arrays",
    ];
    assert_eq!(others, known);
    assert_eq!(plants, tectum_equations::LIBRARY.map(|(name, _)| name));
    for sample in list {
        let (name, path) = (
            sample["name"].as_str().expect("a name"),
            sample["path"].as_str().expect("a path"),
        );
        assert_eq!(
            place.shown(&format!("sample write {name}"))[0],
            format!("{path}\n")
        );
        let again = place.tectum(&format!("sample write {name}"));
        assert!(
            again.status.code() == Some(2)
                && text(&again.stderr).contains(&format!("{path} exists")),
            "{}",
            text(&again.stderr)
        );
    }
    assert_eq!(
        place.shown("sample write sample-genome elsewhere.json")[0],
        "elsewhere.json\n"
    );
    assert_eq!(place.read("elsewhere.json"), TINY);
    assert!(
        text(&place.tectum("sample write sample").stderr)
            .contains("sample \"sample\" is not built in; built in: sample-genome, ")
    );
    let found = place.json("train rig sample-recording.csv --json");
    let length = found["estimates"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|estimate| estimate["name"] == "length")
        .expect("listed");
    assert!(
        (length["value"].as_f64().expect("a number") - 0.17).abs() < 0.005,
        "{length}"
    );
    let trained = place
        .json("train twin sample-recording.csv -o twin.safetensors --members 1 --steps 20 --json");
    assert_eq!(trained["end"], "completed");
    let made = place.json("generate sample-gguf/model.gguf cat --tokens 8 --json");
    assert!(
        made["text"].is_string() && made["ids"].as_array().is_some_and(|ids| !ids.is_empty()),
        "{made}"
    );
    place.shown("run vector_add.atlas --in sample-arrays/a.npy --in sample-arrays/b.npy --out sum.npy --quiet");
    let (_, sums) = place.array("sum.npy");
    let sums: Vec<f32> = sums
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    assert_eq!(sums, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]);
}
