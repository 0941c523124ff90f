//! `tectum run FILE.atlas`: arrays in, arrays out, and no output after an error.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// An empty working directory, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-program-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).expect("writable");
    }

    /// Writes numbers as `.npy` of a type and shape.
    fn array<const N: usize>(
        &self,
        name: &str,
        descr: &str,
        shape: &str,
        elements: impl IntoIterator<Item = [u8; N]>,
    ) {
        let head =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let bytes = [
            b"\x93NUMPY\x01\x00",
            &(head.len() as u16).to_le_bytes()[..],
            head.as_bytes(),
        ]
        .concat();
        self.write(
            name,
            [bytes, elements.into_iter().flatten().collect()].concat(),
        );
    }

    fn floats(&self, name: &str, shape: &str, values: impl IntoIterator<Item = f32>) {
        self.array(name, "<f4", shape, values.into_iter().map(f32::to_le_bytes));
    }

    /// The header and the floats of a file.
    fn read(&self, name: &str) -> (String, Vec<f32>) {
        let bytes = std::fs::read(self.0.join(name)).expect("there");
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let values = bytes[start..]
            .chunks(4)
            .map(|word| f32::from_le_bytes(word.try_into().expect("whole")));
        (
            text(&bytes[10..start]).trim_end().to_owned(),
            values.collect(),
        )
    }

    fn tectum(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        // Mesa's device-select layer looks for a Wayland server and complains on standard error if
        // there is none.
        command
            .env("NODEVICE_SELECT", "1")
            .env("XDG_CACHE_HOME", self.0.join("cache"));
        command
            .args(line.split_whitespace())
            .current_dir(&self.0)
            .output()
            .expect("the binary starts")
    }

    /// Runs a command that succeeds; returns the last line of its output as JSON.
    fn json(&self, line: &str) -> Value {
        let output = self.tectum(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        serde_json::from_str(text(&output.stdout).lines().last().expect("a last line"))
            .expect("JSON")
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("there");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("readable")
                    .file_name()
                    .into_string()
                    .expect("plain")
            })
            .collect();
        names.sort();
        names
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

/// A program of the library.
fn library(name: &str) -> String {
    format!(
        "{}/../tectum-programs/programs/{name}.atlas",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn arrays_go_in_and_come_out_in_their_shape_with_a_receipt() {
    let place = Place::new("shape");
    place.floats("a.npy", "10, 100", (0..1000).map(|i| i as f32));
    place.floats("b.npy", "10, 100", (0..1000).map(|i| 0.5 * i as f32));
    let report = place.json(&format!(
        "run {} --in a.npy --in b.npy --out y.npy --json --device cpu",
        library("vector_add")
    ));
    assert_eq!(
        (&report["device"], &report["bounds"], &report["elements"]),
        (&"cpu".into(), &"proven".into(), &1000.into())
    );
    assert_eq!(
        (&report["grid"], &report["block"]),
        (
            &serde_json::json!([4, 1, 1]),
            &serde_json::json!([250, 1, 1])
        )
    );
    assert_eq!(
        (
            &report["receipt"]["code"][0]["kernel"],
            &report["receipt"]["runs"]
        ),
        (&"program_vector_add".into(), &1.into())
    );
    assert_eq!(
        (
            &report["recognized"]["shape"],
            &report["recognized"]["text"]
        ),
        (&"map".into(), &"map over 1000 elements".into())
    );
    let (head, y) = place.read("y.npy");
    assert!(
        head.contains("'<f4'") && head.contains("(10, 100)"),
        "{head}"
    );
    assert!(y.iter().enumerate().all(|(i, y)| *y == 1.5 * i as f32));
    // By name, with another block, over its own input.
    let report = place.json(&format!(
        "run {} --in b=a.npy --in b.npy --out y=b.npy --block 32 --json --quiet",
        library("vector_add")
    ));
    assert_eq!(report["grid"][0], 32);
    assert_eq!(place.read("b.npy").1, y);
    assert_eq!(place.names(), ["a.npy", "b.npy", "y.npy"]);
}

#[test]
fn sizes_follow_from_lanes_constants_and_the_command_line() {
    let place = Place::new("sizes");
    place.floats("s.npy", "1,", [7.5]);
    place.floats("x.npy", "3,", [1.0, 2.0, 4.0]);
    place.array("n.npy", "<u8", "", [3u64.to_le_bytes()]);
    let lines = [
        (
            "fill --in s.npy --out y.npy --grid 2 --block 4",
            "(8,)",
            vec![7.5; 8],
        ),
        (
            "fill --in s.npy --out y.npy --size y=2,3",
            "(2, 3)",
            vec![7.5; 6],
        ),
        (
            "reduce_sum --in x.npy --in n.npy --out y.npy --grid 1",
            "(1,)",
            vec![7.0],
        ),
        (
            "reduce_max --in n=n.npy --in x.npy --out y.npy --grid 1 --shared 4096",
            "(1,)",
            vec![4.0],
        ),
        ("fill --in s.npy --out y.npy --grid 0", "(0,)", vec![]),
    ];
    for (line, shape, expected) in lines {
        let (name, rest) = line.split_once(' ').expect("a name");
        place.json(&format!("run {} {rest} --json", library(name)));
        let (head, y) = place.read("y.npy");
        assert!(
            head.contains(shape) && y == expected,
            "{line}: {head} {y:?}"
        );
    }
    // If nothing depends on the lane, one lane runs: here with the loop's count of elements.
    place.write("loop.atlas", "buffer x: f32 read\nbuffer y: f32 write\nmov_imm.u64 r1, 4\nmov_imm.u64 r2, 0\nmov_imm.u32 r0, 2\n@l:\nldg.f32 r3, [x + r2]\nneg.f32 r3, r3\nstg.f32 [y + r2], r3\nadd.u64 r2, r2, r1\nloop r0, @l");
    let report = place.json("run loop.atlas --in x.npy --out y.npy --size y=3 --json");
    assert_eq!(
        (&report["block"], &report["recognized"]["text"]),
        (&serde_json::json!([1, 1, 1]), &"map over 3 elements".into())
    );
    assert_eq!(place.read("y.npy").1, [-1.0, -2.0, -4.0]);
    let contradicted = place.tectum("run loop.atlas --in x.npy --out none.npy --size y=2");
    assert!(
        text(&contradicted.stderr).contains("reaches byte 12 of the 8 of buffer y"),
        "{}",
        text(&contradicted.stderr)
    );
    place.floats("none.npy", "0,", []);
    let report = place.json(&format!(
        "run {} --in none.npy --out y.npy --json",
        library("relu")
    ));
    assert_eq!(
        (&report["elements"], place.read("y.npy").1.len()),
        (&0.into(), 0)
    );
}

/// A recognised program gives the same as the unchanged program; the report says which of them ran,
/// by which kernels, and why.
#[test]
fn what_is_recognised_runs_by_the_kernels_for_it_unless_refused() {
    let place = Place::new("recognized");
    place.floats("a.npy", "6, 4", (0..24).map(|i| i as f32));
    place.floats("b.npy", "4, 5", (0..20).map(|i| 0.5 * i as f32));
    place.array("size.npy", "<u8", "3,", [6u64, 4, 5].map(u64::to_le_bytes));
    let line = format!(
        "run {} --in a.npy --in b.npy --in size.npy --size y=6,5 --device cpu --json",
        library("gemm")
    );
    let kernels = |report: &Value| {
        report["receipt"]["code"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|code| code["kernel"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    let plain = place.json(&format!("{line} --no-recognize --out plain.npy"));
    assert_eq!(
        (
            &plain["recognized"]["shape"],
            &plain["recognized"]["refusals"][0]
        ),
        (&"general".into(), &"recognition was not requested".into())
    );
    assert_eq!(
        kernels(&plain)
            .iter()
            .filter(|name| *name == "program_gemm")
            .count(),
        1
    );
    let kept = place.json(&format!("{line} --out kept.npy"));
    assert!(
        kept["recognized"]["refusals"]
            .to_string()
            .contains("the order of the additions would change"),
        "{}",
        kept["recognized"]
    );
    let tuned = place.json(&format!("{line} --reassociate --out tuned.npy"));
    assert_eq!(
        (&tuned["recognized"]["text"], &tuned["bounds"]),
        (&"gemm.f32 of [6, 4] and [4, 5]".into(), &"proven".into())
    );
    assert!(
        !kernels(&tuned)
            .iter()
            .any(|name| name.starts_with("program_")),
        "{:?}",
        kernels(&tuned)
    );
    // Every product and sum is exact here.
    assert_eq!(
        (place.read("tuned.npy"), place.read("kept.npy")),
        (place.read("plain.npy"), place.read("plain.npy"))
    );
    let stdout = |options: &str| {
        text(
            &place
                .tectum(&format!("{line} --out y.npy {options}").replace(" --json", ""))
                .stdout,
        )
    };
    assert!(
        stdout("--reassociate").contains("gemm.f32 of [6, 4] and [4, 5]"),
        "{}",
        stdout("--reassociate")
    );
    assert!(
        stdout("").contains("no faster form, it runs as written; not map: "),
        "{}",
        stdout("")
    );
    // A count that contradicts the buffers is an error, and nothing is written.
    place.array("size.npy", "<u8", "3,", [6u64, 5, 5].map(u64::to_le_bytes));
    let output = place.tectum(&format!("{line} --out none.npy"));
    assert_eq!(
        (output.status.code(), place.0.join("none.npy").exists()),
        (Some(2), false)
    );
    assert!(
        text(&output.stderr).contains("reaches byte"),
        "{}",
        text(&output.stderr)
    );
}

/// With the same arrays, `explain` gives the verdict of `run`: with the counts in them, and
/// without.
#[test]
fn a_program_is_explained_as_it_runs() {
    let place = Place::new("verdict");
    place.floats("a.npy", "6, 4", (0..24).map(|i| i as f32));
    place.floats("b.npy", "4, 5", (0..20).map(|i| 0.5 * i as f32));
    place.array("size.npy", "<u8", "3,", [6u64, 4, 5].map(u64::to_le_bytes));
    place.floats("x.npy", "3,", [1.0, -2.0, 4.0]);
    place.write("twice.atlas", "buffer y: f32 write\nbuffer n: u32 read\nmov_imm.f32 r0, 1.0\nldg.u32 r1, [n + 0]\n@l:\nset.lt.u32 p0, r1, r1\nbra @l, p0\nset.gt.u32 p0, r1, r1\nbra @l, p0\nstg.f32 [y + 0], r0\n");
    place.array("n.npy", "<u4", "1,", [3u32.to_le_bytes()]);
    let gemm = format!(
        "{} --in a.npy --in b.npy --in size.npy --size y=6,5",
        library("gemm")
    );
    let lines = [
        (gemm.clone(), "no faster form, it runs as written"),
        (
            format!("{gemm} --reassociate"),
            "gemm.f32 of [6, 4] and [4, 5]",
        ),
        (format!("{gemm} --reassociate --no-recognize"), ""),
        (
            format!("{gemm} --no-recognize"),
            "no faster form, it runs as written",
        ),
        (
            format!("{} --in x.npy", library("relu")),
            "map over 3 elements",
        ),
        (
            format!("{} --in x.npy --grid 3 --block 1", library("relu")),
            "map over 3 elements",
        ),
        (
            "twice.atlas --in n.npy --size y=1".to_owned(),
            "no faster form, it runs as written",
        ),
    ];
    for (line, verdict) in lines {
        let explained = place.tectum(&format!("explain {line}"));
        if verdict.is_empty() {
            assert_eq!(explained.status.code(), Some(2), "{line}");
            continue;
        }
        let explained = text(&explained.stdout);
        let ran = &place.json(&format!("run {line} --device cpu --json"))["recognized"];
        assert_eq!(ran["text"], verdict, "{line}");
        assert!(
            explained.contains(&format!("recognised as: {verdict}\n")),
            "{line}: {explained}"
        );
        for reason in ran["refusals"]
            .as_array()
            .expect("a list")
            .iter()
            .chain(ran["proofs"].as_array().expect("a list"))
        {
            let reason = reason.as_str().expect("text");
            assert!(
                explained.lines().any(|line| line.trim_start() == reason),
                "{line}: {reason}: {explained}"
            );
        }
    }
    let reasons = place.json("run twice.atlas --in n.npy --size y=1 --device cpu --json")["recognized"]["refusals"].to_string();
    assert!(reasons.contains("more than one jump leads back to this line; a loop has exactly one (line 6: `set.lt.u32 p0, r1, r1`)"), "{reasons}");
    // The mistakes are the same.
    for line in [
        "--in a.npy",
        "--in x.npy --in x.npy --grid 7",
        "--in x.npy --in missing.npy",
    ] {
        let [ran, explained] = ["run", "explain"]
            .map(|command| place.tectum(&format!("{command} {} {line}", library("vector_add"))));
        assert_eq!(
            (ran.status.code(), text(&ran.stderr)),
            (explained.status.code(), text(&explained.stderr)),
            "{line}"
        );
        assert!(!ran.status.success(), "{line}");
    }
    let output = place.tectum(&format!(
        "explain {} --in x.npy --sizes x=8",
        library("relu")
    ));
    assert!(
        text(&output.stderr).contains("cannot be used with"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_result_that_no_file_receives_is_named() {
    let place = Place::new("discarded");
    place.floats("x.npy", "3, 1", [1.0, -2.0, 4.0]);
    let line = format!("run {} --in x.npy --device cpu", library("relu"));
    let shown = text(&place.tectum(&line).stdout);
    assert!(
        shown.contains("discarded   y [3, 1]: no file was named; --out y=FILE.npy writes it\n"),
        "{shown}"
    );
    assert_eq!(
        place.json(&format!("{line} --json"))["discarded"],
        serde_json::json!([{"buffer": "y", "shape": [3, 1]}])
    );
    let saved = place.tectum(&format!("{line} --out y.npy"));
    assert!(
        !text(&saved.stdout).contains("discarded"),
        "{}",
        text(&saved.stdout)
    );
}

#[test]
fn buffers_that_are_read_and_written_begin_as_their_input_or_as_zeros() {
    let place = Place::new("both");
    place.write("twice.atlas", "buffer x: f32 read_write\nbuffer h: bf16 read_write\nldg.f32 r0, [x]\nadd.f32 r0, r0, r0\nstg.f32 [x], r0\nldg.bf16 r1, [h]\nneg.bf16 r1, r1\nstg.bf16 [h], r1");
    place.floats("x.npy", "3, 1", [1.0, -2.0, 0.5]);
    place.json("run twice.atlas --in x.npy --out x=x.npy --out h.npy --json");
    let (head, x) = place.read("x.npy");
    assert!(
        head.contains("(3, 1)") && x == [2.0, -4.0, 1.0],
        "{head} {x:?}"
    );
    let halves = std::fs::read(place.0.join("h.npy")).expect("there");
    assert!(text(&halves).contains("'<u2'") && halves.ends_with(&[0, 0x80, 0, 0x80, 0, 0x80]));
    // Raw bytes may have any type, and keep it.
    place.write(
        "raw.atlas",
        "buffer x: u8 read_write\nldg.f32 r0, [x]\nadd.f32 r0, r0, r0\nstg.f32 [x], r0",
    );
    place.json("run raw.atlas --in x.npy --out x.npy --json");
    assert_eq!(place.read("x.npy"), (head, vec![4.0, -8.0, 2.0]));
}

#[test]
fn a_program_of_more_buffers_than_a_kernel_has_runs_all_the_same() {
    let place = Place::new("many");
    let outputs: String = (0..11)
        .map(|i| format!("buffer y{i}: f32 write\n"))
        .collect();
    let stores: String = (0..11).map(|i| format!("stg.f32 [y{i}], r0\n")).collect();
    place.write(
        "many.atlas",
        format!(
            "program many\nbuffer x: f32 read\n{outputs}ldg.f32 r0, [x]\nneg.f32 r0, r0\n{stores}"
        ),
    );
    place.floats("x.npy", "3,", [1.0, -2.0, 3.0]);
    let report = place.json("run many.atlas --in x.npy --out y10=y.npy --json");
    assert_eq!(
        (place.read("y.npy").1, &report["recognized"]),
        (vec![-1.0, 2.0, -3.0], &Value::Null)
    );
    let reason = report["receipt"]["fallbacks"][0]["reason"]
        .as_str()
        .expect("told");
    assert!(
        reason.contains("12 buffers") && reason.ends_with("the reference interpreter ran it"),
        "{reason}"
    );
    assert!(
        text(
            &place
                .tectum("run many.atlas --in x.npy --device vulkan:99")
                .stderr
        )
        .contains("vulkan:99")
    );
}

#[test]
fn mistakes_get_a_message_an_exit_code_and_leave_nothing() {
    let place = Place::new("mistakes");
    place.floats("a.npy", "3,", [1.0, 2.0, 3.0]);
    place.floats("b.npy", "4,", [0.0; 4]);
    place.array("d.npy", "<f8", "3,", [[0; 8]; 3]);
    place.write("text.npy", "1 2 3");
    place.write("bad.atlas", "buffer x: f32 read\nadd.f32 r0, r1, r1");
    place.write("fault.atlas", "buffer x: u32 read\nbuffer y: u32 write\nldg.u32 r0, [x]\nmov_imm.u32 r1, 6\ndiv.u32 r0, r1, r0\nstg.u32 [y], r0");
    place.array("zero.npy", "<u4", "3,", [1u32, 0, 2].map(u32::to_le_bytes));
    let before = place.names();
    let cases = [
        (
            "vector_add --in a.npy",
            2,
            "buffer b is read and has no contents; --in b=FILE.npy gives them",
        ),
        (
            "vector_add --in a.npy --in b.npy --out y.npy",
            2,
            "buffer a has 3 elements and buffer b 4; lanes take one of each",
        ),
        (
            "vector_add --in a.npy --in d.npy --out y.npy",
            2,
            "buffer b: d.npy has elements <f8, f32 needs <f4",
        ),
        (
            "vector_add --in a.npy --in text.npy",
            3,
            "text.npy: not a .npy file",
        ),
        ("vector_add --in a.npy --in missing.npy", 7, "missing.npy"),
        (
            "vector_add --in a.npy --in a.npy --in a.npy",
            2,
            "--in a.npy: the program reads no further buffer",
        ),
        (
            "vector_add --in c=a.npy",
            2,
            "--in c=a.npy: buffer \"c\" is unknown; declared: a, b, y",
        ),
        (
            "vector_add --in y=a.npy",
            2,
            "--in y=a.npy: buffer y is declared write; no instruction reads it",
        ),
        (
            "vector_add --in a=a.npy --in a=a.npy",
            2,
            "buffer a is given twice",
        ),
        (
            "vector_add --in a.npy --in a.npy --out a=y.npy",
            2,
            "buffer a is declared read; no instruction writes it",
        ),
        (
            "vector_add --in a.npy --in a.npy --out y.npy --grid 2",
            2,
            "2 blocks of 256 lanes for the 3 elements of buffer y",
        ),
        (
            "vector_add --in a.npy --in a.npy --out y.npy --size y=4",
            2,
            "buffer a has 3 elements and buffer y 4",
        ),
        (
            "vector_add --in a.npy --in a.npy --size a=4",
            2,
            "the shape of buffer a is known already",
        ),
        (
            "vector_add --in a.npy --in a.npy --out y.npy --block 2000",
            2,
            "has 2000 lanes, the maximum is 1024",
        ),
        (
            "vector_add --in a.npy --in a.npy --out nowhere/y.npy",
            7,
            "nowhere/y.npy",
        ),
        (
            "vector_add --in a.npy --in a.npy --out y.npy --device null",
            2,
            "null executes nothing",
        ),
        (
            "vector_add --in a.npy --in a.npy --out y.npy --device vulkan:99",
            4,
            "device vulkan:99",
        ),
        (
            "vector_add --in a.npy --in a.npy --out y.npy --seconds 3",
            2,
            "--seconds is for scenarios, and this is a program",
        ),
        (
            "fill --in a.npy --out y.npy",
            2,
            "no array determines how many lanes the program needs; the size of an output does, or the grid",
        ),
        ("./bad.atlas", 2, "bad.atlas: "),
        ("./missing.atlas", 7, "missing.atlas"),
        (
            "./fault.atlas --in zero.npy --out y.npy",
            2,
            "program: lane 1, line 5 `div.u32 r0, r1, r0`: integer division by zero",
        ),
    ];
    for (line, code, message) in cases {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let path = if name.starts_with('.') {
            name.to_owned()
        } else {
            library(name)
        };
        let output = place.tectum(&format!("run {path} {rest}"));
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(message),
            "{line}: {stderr}"
        );
        assert!(output.stdout.is_empty(), "{line}");
        assert_eq!(place.names(), before, "{line}");
    }
    let output = place.tectum("run pendulum --grid 3");
    assert!(
        text(&output.stderr).contains("--grid is for programs"),
        "{}",
        text(&output.stderr)
    );
    let malformed = place.tectum(&format!("run {} --grid 1,x", library("fill")));
    assert!(
        text(&malformed.stderr).contains("one to three whole numbers"),
        "{}",
        text(&malformed.stderr)
    );
}

#[test]
fn a_device_takes_the_program_or_the_receipt_says_why_the_cpu_did() {
    let place = Place::new("device");
    if !text(&place.tectum("devices --json").stdout).contains("vulkan:0") {
        println!("skipped: no Vulkan device: a program on it");
        return;
    }
    place.floats("a.npy", "3,", [1.0, -2.0, 3.0]);
    let report = place.json(&format!(
        "run {} --in a.npy --out y.npy --device vulkan:0 --json",
        library("relu")
    ));
    assert_eq!(
        (
            &report["device"],
            &report["receipt"]["totals"]["transfers_up"]
        ),
        (&"vulkan:0".into(), &1.into())
    );
    assert_eq!(place.read("y.npy").1, [1.0, 0.0, 3.0]);
    let buffers = "buffer x: f32 read\nbuffer y: f32 write\n";
    place.write("wide.atlas", format!("{buffers}ldg.f32 r0, [x]\ncvt.f64.f32 r1, r0\nadd.f64 r1, r1, r1\ncvt.f32.f64 r0, r1\nstg.f32 [y], r0"));
    let line = "run wide.atlas --in a.npy --out y.npy --device vulkan:0";
    let report = place.json(&format!("{line} --json"));
    let fallback = &report["receipt"]["fallbacks"][0];
    assert_eq!(
        (&report["device"], &fallback["what"]),
        (&"cpu".into(), &"vulkan:0".into())
    );
    assert!(
        fallback["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("f64")),
        "{fallback}"
    );
    assert_eq!(place.read("y.npy").1, [2.0, -4.0, 6.0]);
    let stdout = text(&place.tectum(line).stdout);
    assert!(
        stdout
            .lines()
            .any(|line| line.starts_with("fallback") && line.contains("vulkan:0: ")),
        "{stdout}"
    );
}

/// A loop that the device cuts off is run by the CPU, and the receipt says why.
#[test]
fn defect_20_what_a_device_cuts_off_the_cpu_runs() {
    let place = Place::new("cut-off");
    if !text(&place.tectum("devices --json").stdout).contains("vulkan:0") {
        println!("skipped: no vulkan:0");
        return;
    }
    const COLUMNS: usize = 40_000;
    place.floats("a.npy", "2, 40000", (0..2 * COLUMNS).map(|_| 1.0));
    place.floats("x.npy", "40000,", (0..COLUMNS).map(|_| 1.0));
    place.array(
        "size.npy",
        "<u8",
        "2,",
        [2, COLUMNS as u64].map(u64::to_le_bytes),
    );
    let line = format!(
        "run {} --in a.npy --in x.npy --in size.npy --out y.npy --size y=2 --device vulkan:0 --json",
        library("matvec")
    );
    let report = place.json(&line);
    assert_eq!(place.read("y.npy").1, [COLUMNS as f32; 2]);
    let fallbacks = report["receipt"]["fallbacks"].as_array().expect("a list");
    if text(&place.tectum("devices --json").stdout).contains("llvmpipe") {
        assert_eq!(
            (&report["device"], &fallbacks[0]["what"]),
            (&"cpu".into(), &"vulkan:0".into())
        );
        assert!(
            fallbacks[0]["reason"]
                .as_str()
                .expect("text")
                .contains("line 24 `bra @next`: the device ended the loop"),
            "{fallbacks:?}"
        );
    }
}

/// An endless program gives a warning, and ends at its limit with the line of the loop.
#[test]
fn defect_23_a_program_without_end_ends_at_its_limit() {
    let place = Place::new("endless");
    place.write("endless.atlas", "buffer y: u32 write\nmov_imm.u32 r0, 0\n@a:\nadd.u32 r0, r0, r0\nstg.u32 [y], r0\nbra @a\n");
    let check = place.tectum("check endless.atlas");
    let stdout = text(&check.stdout);
    assert!(
        check.status.success()
            && stdout.contains("endless.atlas: warning: line 6, column 1: the loop has no exit"),
        "{stdout}"
    );
    assert!(
        !text(&place.tectum(&format!("check {}", library("matvec"))).stdout).contains("warning")
    );
    let devices = ["cpu", "vulkan:0"]
        .into_iter()
        .filter(|id| text(&place.tectum("devices --json").stdout).contains(id));
    for device in devices {
        let run = place.tectum(&format!("run endless.atlas --out y.npy --grid 1 --block 1 --size y=1 --limit 5000 --device {device}"));
        let message = text(&run.stderr);
        assert!(
            run.status.code() == Some(2) && message.contains("line 6 `bra @a`: the loop did not end within the limit of 5000 iterations of a lane"),
            "{message}"
        );
        assert!(!place.names().contains(&"y.npy".to_owned()));
    }
    assert!(
        !place
            .tectum("run endless.atlas --out y.npy --grid 1 --limit 4294967295")
            .status
            .success()
    );
}
