//! Output and files of the command for correct and incorrect use.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// An empty working directory, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tectum-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }

    fn tectum(&self, line: &str) -> Output {
        self.command(line).output().expect("the binary starts")
    }

    /// Runs a command with variables of its environment.
    fn tectum_with(&self, variables: &[(&str, &str)], line: &str) -> Output {
        self.command(line)
            .envs(variables.iter().copied())
            .output()
            .expect("the binary starts")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        // As on a machine without a desktop, where Mesa's layer of device selection would complain
        // on standard error.
        command
            .env_remove("NODEVICE_SELECT")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("RUST_LOG")
            .env_remove("TECTUM_THREADS");
        command.env("XDG_CACHE_HOME", self.0.join("cache"));
        command.args(line.split_whitespace()).current_dir(&self.0);
        command
    }

    /// Runs a command that succeeds; its standard output is one line of JSON.
    fn json(&self, line: &str) -> Value {
        let output = self.tectum(line);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{line}: {stderr}");
        assert_eq!(stdout.lines().count(), 1, "{line}: {stdout}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("there");
    let mut names = entries
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("plain")
        })
        .collect::<Vec<_>>();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const HEADER: &str = "la_position,pend_velocity,pend_position,cmd_volts,elapsed\n";

const DOUBLE: &str = "program double\nbuffer x: f32 read_write\nldg.f32 r7, [x]\nadd.f32 r7, r7, r7\nstg.f32 [x], r7\n";

#[test]
fn a_program_is_explained_with_what_was_proven_and_what_not() {
    let place = Place::new("explain-program");
    place.write("double.atlas", DOUBLE);
    let loops = "buffer x: f32 read\nbuffer y: f32 write\nmov_imm.f32 r0, 0.0\nmov_imm.u64 r1, 4\nmov_imm.u64 r2, 0\nmov_imm.u32 r3, 9\n@l:\nldg.f32 r4, [x + r2]\nadd.f32 r0, r0, r4\nadd.u64 r2, r2, r1\nloop r3, @l\nstg.f32 [y + 0], r0\n";
    place.write("total.atlas", loops);
    let explained = |line: &str| {
        let output = place.tectum(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let map = explained("explain double.atlas");
    for needed in [
        "recognised as: map over 1024 elements",
        "no lane faults: ",
        "re-rolled, for grid [4, 1, 1] of block [256, 1, 1]",
        "WGSL:",
        "fn main(",
        "PTX:",
        ".visible .entry",
    ] {
        assert!(map.contains(needed), "{needed}: {map}");
    }
    let sum = explained("explain total.atlas --sizes x=40 y=4 --reassociate");
    assert!(
        sum.contains("recognised as: reduce_add.f32 of 1 rows of 10")
            && sum.contains("kernel sum_f32, PTX:"),
        "{sum}"
    );
    let kept = explained("explain total.atlas --sizes x=40 y=4");
    assert!(
        kept.contains("recognised as: no faster form, it runs as written")
            && kept.contains("not reduction: the order of the additions would change"),
        "{kept}"
    );
}

/// Power and a motor of 8 x 1 x 10 voxels, in legacy units.
const GENOME: &str = r#"{"version": "2.0", "genome_title": "small", "physiology": {"burst_delay": 0.025}, "hats": 1, "blueprint": {
"_____10c-o__mot-cx-__name-t": "motor", "_____10c-o__mot-cx-_group-t": "OPU", "_____10c-o__mot-nx-mp_acc-b": true,
"_____10c-o__mot-cx-___bbx-i": 8, "_____10c-o__mot-cx-___bby-i": 1, "_____10c-o__mot-cx-___bbz-i": 10,
"_____10c-o__mot-nx-refrac-i": 0, "_____10c-o__mot-nx-excite-f": 5,
"_____10c-___pwr-cx-___bbx-i": 1, "_____10c-___pwr-cx-___bby-i": 1, "_____10c-___pwr-cx-___bbz-i": 1, "_____10c-___pwr-nx-mp_acc-b": false,
"_____10c-___pwr-nx-leak_c-f": 10, "_____10c-___pwr-nx-pstcr_-f": 500,
"_____10c-___pwr-cx-dstmap-d": {"o__mot": [["projector", [1, 1, 1], -2, true, 1, 100, 1], ["memory", [1, 1, 1], 1, false]]}}}"#;

#[test]
fn a_genome_is_shown_with_its_synapses_units_and_memory() {
    let place = Place::new("inspect-genome");
    // The kind is detected from the content, not from the name.
    place.write("brain.txt", GENOME);
    let output = place.tectum("inspect brain.txt");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in [
        "genome \"small\" (brain.txt), version 2.0, 25 ms a burst",
        "_power         core    1 x 1 x 1   1        1        1          -      1     0           1             -         0       255      no     whole",
        "o__mot  motor  output  8 x 1 x 10  1        80       1          -      0     0           0.05          -         0       1        yes    divided",
        "_power  o__mot  projector   80          -2          100 %         +100 / -1, window 3",
        "_power  o__mot  memory      none fixed  1           100 %         no",
        "leak: legacy: an amount of potential (area _power: \"_____10c-___pwr-nx-leak_c-f\": 10 exceeds 1)",
        "  10 became 1: _power",
        "excitability: legacy: percent (area o__mot: \"_____10c-o__mot-nx-excite-f\": 5 exceeds 1)",
        "  5 became 0.05: o__mot",
        "  500 became 255: _power",
        "warning: section \"hats\" is unknown",
        "2 areas, 81 neurons (3.9 kB), 2 mappings, 80 synapses (1.1 kB) at most",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    let inspection = place.json("inspect brain.txt --units legacy --json");
    let found = [
        "/kind",
        "/areas/1/name",
        "/areas/1/neurons/end",
        "/areas/0/properties/leak",
        "/estimate/synapses",
        "/mappings/0/multiplier",
        "/units/policy",
    ];
    let expected = serde_json::json!(["genome", "motor", 81, 1.0, 80, -2, "legacy"]);
    assert_eq!(
        Value::Array(
            found
                .iter()
                .map(|path| inspection.pointer(path).cloned().unwrap_or_default())
                .collect()
        ),
        expected,
        "{inspection}"
    );
}

/// An eye that power feeds, with one mapping of each kind that is explained.
const WATCHED: &str = r#"{"version": "2.1", "genome_title": "watched", "physiology": {"simulation_timestep": 0.025}, "blueprint": {
"___pwr": {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": false, "postsynaptic_current": 255, "cortical_mapping_dst": {"eye___": [["projector", 1, 1, false]]}},
"eye___": {"group_id": "IPU", "block_boundaries": [1, 1, 9], "mp_charge_accumulation": false, "refractory_period": 2,
           "cortical_mapping_dst": {"arm___": [["projector", 1, 9, true, 1, 5, 2], ["lateral_+z", 1, -4, false, 0, 0, 0, 0, 3], ["memory", 1, 1, false]]}},
"arm___": {"group_id": "OPU", "block_boundaries": [1, 1, 9], "mp_charge_accumulation": true, "neuron_excitability": 0.5, "leak_coefficient": 0.25}}}"#;

#[test]
fn a_genome_is_explained_by_mapping_with_what_its_state_and_scale_hang_on() {
    let place = Place::new("explain-genome");
    place.write("brain.txt", WATCHED);
    let output = place.tectum("explain brain.txt");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in [
        "brain.txt: 19 neurons of 3 kinds, 26 synapses",
        "_power  eye___  projector   packed rows              9         0.0 kB  255               1                          0.0",
        "eye___  arm___  projector   plastic rows             9         0.1 kB  1 / its synapses  9       +5 −2 of 3 bursts  0.0",
        "eye___  arm___  lateral_+z  packed rows              8         0.0 kB  1 / its synapses  -4                         0.0   delay of 3",
        "eye___  arm___  memory      nothing: no memory area  0         0.0 kB  1 / its synapses  1",
        "potentials: 16 binary places, the maximum",
        "  draw whether they fire (arm___)",
        "  have a refractory period (eye___)",
        "  leak: the bursts of silence are made up for at the next arrival (arm___)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    let explanation = place.json("explain brain.txt --shards 2 --freeze-idle --json");
    let found = [
        "/kind",
        "/network/synapses",
        "/network/formats/0/limit",
        "/mappings/0/strategy",
        "/mappings/2/unsupported/0/delay",
        "/network/zero_sums/0/1",
        "/network/extra_state/0/1",
    ];
    let found = found.map(|path| explanation.pointer(path).cloned().unwrap_or_default());
    assert_eq!(
        Value::from(found.to_vec()),
        serde_json::json!([
            "genome",
            26,
            "max_bits",
            "packed_rows",
            3,
            "frozen",
            "refractory"
        ]),
        "{explanation}"
    );
    for (line, code, message) in [
        (
            "explain brain.txt --grid 1",
            2,
            "explain brain.txt: --grid is for programs, and this is a genome",
        ),
        (
            "explain brain.txt --device vulkan:99",
            4,
            "device vulkan:99",
        ),
        ("explain absent.json", 7, "absent.json"),
    ] {
        let output = place.tectum(line);
        assert!(
            text(&output.stderr).contains(message) && output.status.code() == Some(code),
            "{line}: {:?} {}",
            output.status.code(),
            text(&output.stderr)
        );
    }
}

#[test]
fn a_watched_run_has_the_same_spikes_and_leaves_whole_files() {
    let place = Place::new("watch-genome");
    place.write("brain.json", WATCHED);
    let alone = place.json("run brain.json --bursts 50 --json");
    let watched =
        place.json("run brain.json --bursts 50 --plot pictures --record spikes.mcap --json");
    assert_eq!(
        (&watched["spike_hash"], &watched["spikes"]),
        (&alone["spike_hash"], &alone["spikes"])
    );
    assert!(
        alone["spikes"].as_u64().is_some_and(|spikes| spikes > 100),
        "{alone}"
    );
    assert_eq!(place.names(), ["brain.json", "pictures", "spikes.mcap"]);
    assert_eq!(
        names(&place.0.join("pictures")),
        ["raster.png", "raster.svg", "rates.png", "rates.svg"]
    );
    let recorded = std::fs::read(place.0.join("spikes.mcap")).expect("there");
    assert!(recorded.starts_with(b"\x89MCAP0\r\n") && recorded.ends_with(b"\x89MCAP0\r\n"));
    let bursts = recorded
        .windows(10)
        .filter(|bytes| bytes.starts_with(b"{\"burst\":") && bytes[9].is_ascii_digit())
        .count();
    assert_eq!(bursts, 50);
    // Standard output is not a terminal here: no raster, no escapes.
    let shown = text(&place.tectum("run brain.json --bursts 5").stdout);
    assert!(
        !shown.contains('\x1b') && shown.contains("spike hash"),
        "{shown}"
    );
    let output = place.tectum("run brain.json --record nowhere/spikes.mcap");
    assert!(
        !output.status.success() && text(&output.stderr).contains("nowhere/spikes.mcap"),
        "{}",
        text(&output.stderr)
    );
    let output = place.tectum("run pendulum --plot pictures");
    assert!(
        text(&output.stderr).contains("--plot is for genomes"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_genome_moves_a_body_and_says_in_its_receipt_what_it_does_not_do() {
    let place = Place::new("genome-brain");
    place.write("brain.json", WATCHED);
    let wiring = "sensors = [{ channel = \"angle\", area = \"eye___\", amount = 300 }]\nmotors = [{ channel = 0, area = \"arm___\", rest = 0.5 }]\n";
    place.write(
        "scenarios/watched.toml",
        &format!("[body]\nname = \"pendulum\"\n[brain]\ngenome = \"brain.json\"\n{wiring}[loop]\nseconds = 5\nclock = \"sim\"\nsnapshot_every = 20\n"),
    );
    let whole = place.json("run watched --no-plots --json");
    assert_eq!(
        (&whole["brain"], &whole["ticks"], &whole["end"]),
        (&"genome".into(), &100.into(), &"completed".into()),
        "{whole}"
    );
    let receipt = std::fs::read_to_string(place.0.join("runs/1/receipt.json")).expect("there");
    assert!(
        receipt.contains("1 mapping has a delay") && receipt.contains("spiking_dynamics"),
        "{receipt}"
    );
    place.json("run watched --seconds 2 --no-plots --json");
    let resumed = place.json("run watched --resume runs/2 --no-plots --json");
    assert_eq!(
        (&resumed["resumed_at_tick"], &resumed["return"]),
        (&40.into(), &whole["return"]),
        "{resumed}"
    );
    let routed = place.json("explain route watched --json");
    let choice = &routed["choices"][0];
    assert_eq!(
        (
            &choice["plan"],
            choice["predicted"]
                .as_array()
                .map(|devices| !devices.is_empty())
        ),
        (&"watched: trial ticks".into(), Some(true)),
        "{routed}"
    );
    let auto = place.json("run brain.json --bursts 50 --json");
    assert_eq!(auto["route"]["device"], auto["device"], "{auto}");
    assert_eq!(
        place.json("run brain.json --bursts 50 --device cpu --json")["spike_hash"],
        auto["spike_hash"]
    );
    for (line, message) in [
        (
            "run watched --body rig",
            "body rig: the genome's sensors and motors are those of body pendulum",
        ),
        (
            "run pendulum --brain genome",
            "brain \"genome\" is wired to its body by a scenario",
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
fn mistakes_get_one_line_an_exit_code_and_leave_nothing() {
    let place = Place::new("mistakes");
    place.write(
        "scenarios/pendulum.toml",
        "[body]\nname = \"rig\"\n\n[brain]\nname = \"mppi\"\nsamples = 64\nhorizn = 3\n",
    );
    place.write(
        "no_column.csv",
        "la_position,pend_velocity,pend_position,elapsed\n0,0,0,40\n",
    );
    place.write("nan.csv", &format!("{HEADER}0,0,-180,nan,40\n"));
    place.write("empty.csv", "");
    place.write("double.atlas", DOUBLE);
    place.write("brain.json", GENOME);
    place.write(
        "misspelt.toml",
        "[body]\nname = \"rig\"\n[brian]\nname = \"lqr\"\n",
    );
    place.write(
        "wrong.json",
        &GENOME.replace("nx-refrac-i\": 0", "nx-refrac-i\": -1"),
    );
    let before = place.names();
    let cases = [
        (
            "run pendulum",
            3,
            "scenarios/pendulum.toml:7: unknown key \"horizn\", perhaps \"horizon\"; known: name, model, samples",
        ),
        (
            "run pendlum",
            2,
            "scenario \"pendlum\" is unknown, perhaps \"pendulum\": there is no scenarios/pendlum.toml; built in: ",
        ),
        (
            "run misspelt.toml",
            3,
            "misspelt.toml:3: unknown table [brian], perhaps [brain]; known: name, body, brain, loop",
        ),
        ("run missing.toml", 7, "missing.toml"),
        (
            "run cart_pole --device vulcan:0",
            2,
            "device \"vulcan:0\": expected auto, cpu",
        ),
        (
            "run cart_pole --device vulkan:99",
            4,
            "device vulkan:99: no such device here",
        ),
        ("run cart_pole --device cuda:99", 4, "device cuda:99: "),
        (
            "run cart_pole --brain pid",
            2,
            "brain \"pid\" is unknown; known: mppi, lqr, mpc, adaptive, zero, safe, field, genome",
        ),
        (
            "run cart_pole --body arm",
            2,
            "body \"arm\" is unknown; known: rig, pendulum, cart_pole, acrobot, seeker",
        ),
        (
            "run cart_pole --brain lqr --seconds nan",
            2,
            "seconds is NaN, needs a number above 0",
        ),
        (
            "run cart_pole --brain lqr --data no_column.csv",
            2,
            "brain \"lqr\" learns nothing from it",
        ),
        (
            "run cart_pole --body rig --data no_column.csv",
            3,
            "no_column.csv: line 1: column cmd_volts is missing",
        ),
        (
            "run cart_pole --body rig --data nan.csv",
            3,
            "nan.csv: line 2, column cmd_volts: nan is not finite",
        ),
        (
            "run cart_pole --body rig --data empty.csv",
            3,
            "empty.csv: the file is empty",
        ),
        (
            "run cart_pole --body rig --data missing.csv",
            7,
            "missing.csv",
        ),
        (
            "run cart_pole --brain lqr --inject nan@",
            2,
            "inject \"nan@\": expected one of device-lost@T, nan@T, slow@T, sensor-lost@T, sensor-stuck@T, sensor-outlier@T, stop@T",
        ),
        (
            "run cart_pole --brain lqr --inject nan@99",
            2,
            "inject nan@99: the run ends at 20 s",
        ),
        (
            "run cart_pole --brain lqr --inject device-lost@1",
            2,
            "inject device-lost@1: brain lqr runs on no device",
        ),
        (
            "explain route gemm:0",
            2,
            "plan \"gemm:0\": a size from 1 to 16384 is needed",
        ),
        ("explain route add:1T", 2, "plan \"add:1T\": a size from 1"),
        ("explain missing.atlas", 7, "missing.atlas"),
        (
            "explain double.atlas --sizes y=8",
            2,
            "the program has no buffer y",
        ),
        (
            "explain double.atlas --sizes x=8 --grid 2",
            2,
            "2 blocks of 256 lanes for the 2 elements of buffer x",
        ),
        (
            "explain route pendlum",
            2,
            "neither gemm:N nor add:N: scenario \"pendlum\" is unknown",
        ),
        ("run --resume nowhere", 7, "nowhere/scenario.toml"),
        ("inspect missing.json", 7, "missing.json"),
        (
            "inspect double.atlas",
            2,
            "double.atlas: of no kind that can be shown; genomes (JSON), twins (.safetensors), plants (.plant), policies (.onnx), GGUF",
        ),
        (
            "inspect wrong.json",
            3,
            "wrong.json: area o__mot: _____10c-o__mot-nx-refrac-i: -1 is not from 0 to 65535",
        ),
        (
            "inspect brain.json --units fraction",
            3,
            "brain.json: area _power: _____10c-___pwr-nx-leak_c-f: 10 is not from 0 to 1; if the file is of the legacy unit",
        ),
    ];
    for (line, code, message) in cases {
        let output = place.tectum(line);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        let first = stderr.lines().next().unwrap_or("");
        assert!(
            first.starts_with("error: ") && first.contains(message),
            "{line}: {stderr}"
        );
        assert!(
            stderr
                .lines()
                .skip(1)
                .all(|line| line.starts_with("  because: ")),
            "{line}: {stderr}"
        );
        assert!(output.stdout.is_empty(), "{line}");
        assert_eq!(place.names(), before, "{line}");
    }
}

#[test]
fn a_run_ends_with_its_numbers_and_a_whole_folder() {
    let place = Place::new("run");
    let result = place.json("run pendulum --brain lqr --clock sim --seconds 20 --seed 2 --json");
    for (key, expected) in [
        ("scenario", "pendulum"),
        ("body", "rig"),
        ("brain", "lqr"),
        ("device", "cpu"),
        ("end", "completed"),
    ] {
        assert_eq!(result[key], expected, "{key}");
    }
    assert_eq!(
        (
            result["ticks"].as_u64(),
            result["seed"].as_u64(),
            result["deadline_misses"].as_u64()
        ),
        (Some(500), Some(2), Some(0))
    );
    assert_eq!(
        result["transfers_per_tick"],
        serde_json::json!({ "up": 0, "down": 0 })
    );
    assert!(
        result["upright_fraction"].as_f64().expect("a number") > 0.5,
        "{result}"
    );
    assert!(result["tick_ms"]["p99"].as_f64().expect("a number") > 0.0);
    assert_eq!(result["run_folder"], "runs/1");
    let pictures = [
        "actions.png",
        "actions.svg",
        "angle.png",
        "angle.svg",
        "latency.png",
        "latency.svg",
    ];
    let expected = [
        &pictures[..],
        &[
            "receipt.json",
            "scenario.toml",
            "snapshot.safetensors",
            "summary.json",
            "trace.mcap",
        ],
    ]
    .concat();
    assert_eq!(names(&place.0.join("runs/1")), expected);
    assert_eq!(names(&place.0.join("runs")), ["1"]);
    // The folder has all that its pictures show.
    let drawn = place.tectum("plot runs/1 --out again");
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    assert_eq!(names(&place.0.join("again")), pictures);
    assert_eq!(text(&drawn.stdout).lines().count(), pictures.len());
    let read = |name: &str| std::fs::read(place.0.join(name)).expect("drawn");
    for name in pictures {
        assert!(
            read(&format!("again/{name}")) == read(&format!("runs/1/{name}")),
            "{name}"
        );
    }
    for part in ["lqr on rig, seed 2", "cmd_volts (V)", "time (s)"] {
        assert!(text(&read("again/actions.svg")).contains(part), "{part}");
    }
    let refused = place.tectum("plot again");
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        text(&refused.stderr).contains("again: not the folder of a run: it has no summary.json"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_resumed_run_reaches_the_state_of_one_that_never_stopped() {
    let place = Place::new("resume");
    let common = "--brain lqr --clock sim --no-plots --json";
    let whole = place.json(&format!("run gym_pendulum {common} --seconds 10"));
    place.json(&format!("run gym_pendulum {common} --seconds 4"));
    let resumed = place.json("run --resume runs/2 --seconds 10 --no-plots --json");
    assert_eq!(
        (
            resumed["resumed_at_tick"].as_u64(),
            resumed["ticks"].as_u64()
        ),
        (Some(80), Some(200))
    );
    for key in ["upright_fraction", "time_to_upright_s", "return", "seconds"] {
        assert_eq!(resumed[key], whole[key], "{key}");
    }
    let state =
        |run: &str| std::fs::read(place.0.join(run).join("snapshot.safetensors")).expect("there");
    assert!(state("runs/1") == state("runs/3"));
    let output = place.tectum("run --resume runs/2");
    assert!(
        text(&output.stderr).contains("a larger --seconds continues it"),
        "{}",
        text(&output.stderr)
    );
    let output = place.tectum("run cart_pole --brain lqr --resume runs/2");
    assert!(
        text(&output.stderr).contains("it ran lqr on pendulum with seed 1"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(names(&place.0.join("runs")), ["1", "2", "3"]);
}

#[test]
fn quiet_json_is_one_line_and_runs_go_to_the_given_folder() {
    let place = Place::new("quiet");
    let output = place.tectum("run cart_pole --brain zero --clock sim --seconds 1 --quiet --no-plots --json --runs elsewhere/deep");
    assert_eq!(
        (text(&output.stdout).lines().count(), output.stderr.len()),
        (1, 0),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(names(&place.0.join("elsewhere/deep")), ["1"]);
    let output = place.tectum("run cart_pole --brain zero --clock sim --seconds 1 --no-plots");
    assert!(
        text(&output.stdout).starts_with("scenario"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn the_receipt_names_a_device_that_host_arithmetic_does_not_use() {
    let place = Place::new("unused");
    let result = place
        .json("run cart_pole --brain zero --clock sim --seconds 1 --no-plots --json --device null");
    assert_eq!(result["device"], "cpu");
    let receipt: Value =
        serde_json::from_slice(&std::fs::read(place.0.join("runs/1/receipt.json")).expect("there"))
            .expect("JSON");
    let reasons: Vec<&Value> = receipt["fallbacks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|fallback| &fallback["reason"])
        .collect();
    assert_eq!(
        reasons,
        [
            "0 N is no action of force; the body applies 10 N",
            "plain host arithmetic; null is not used"
        ]
    );
}

#[test]
fn devices_are_listed_with_their_nature() {
    let place = Place::new("devices");
    let listing = place.json("devices --json");
    let cpu = &listing["devices"][0];
    assert_eq!(
        (&cpu["id"], &cpu["software"]),
        (&Value::from("cpu"), &Value::from(false))
    );
    let stdout = text(&place.tectum("devices").stdout);
    assert!(
        stdout.lines().any(|line| line.starts_with("cpu ")),
        "{stdout}"
    );
    let absent = listing["absent"].as_array().expect("a list");
    for absent in absent {
        let (device, reason) = (
            absent["device"].as_str().expect("named"),
            absent["reason"].as_str().expect("told"),
        );
        assert!(
            stdout
                .lines()
                .any(|line| line.starts_with(device) && line.ends_with(reason)),
            "{stdout}"
        );
        let id = if device == "cuda" { "cuda:0" } else { device };
        let output = place.tectum(&format!("verify --device {id}"));
        assert_eq!(output.status.code(), Some(4));
        assert!(
            text(&output.stderr).contains(reason),
            "{}",
            text(&output.stderr)
        );
    }
    let listed = listing["devices"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|device| device["id"] == "cuda:0");
    assert!(
        listed || !absent.is_empty(),
        "cuda is neither listed nor reported absent: {listing}"
    );
}

/// The folder that a run's last line names.
fn folder(place: &Place, summary: &Value) -> PathBuf {
    place
        .0
        .join(summary["run_folder"].as_str().expect("a path"))
}

#[test]
fn the_main_job_balances_and_repeats_byte_for_byte() {
    let place = Place::new("main-job");
    let line = "run pendulum --seconds 20 --seed 1 --clock sim --no-plots --json";
    let runs = [place.json(line), place.json(&format!("{line} --trace"))];
    for summary in &runs {
        assert!(
            summary["upright_fraction"].as_f64() >= Some(0.8),
            "{summary}"
        );
        assert_eq!(
            summary["transfers_per_tick"],
            serde_json::json!({"up": 0, "down": 0})
        );
        assert_eq!(
            (
                summary["device"].as_str(),
                summary["deadline_misses"].as_u64()
            ),
            (Some("cpu"), Some(0))
        );
    }
    let traces = runs
        .each_ref()
        .map(|summary| std::fs::read(folder(&place, summary).join("trace.mcap")).expect("there"));
    assert!(traces[0] == traces[1], "the traces differ");
    let receipt = std::fs::read(folder(&place, &runs[1]).join("receipt.json")).expect("there");
    let receipt: Value = serde_json::from_slice(&receipt).expect("JSON");
    let launches = receipt["launches"].as_array().expect("traced");
    let code: Vec<&str> = receipt["code"]
        .as_array()
        .expect("named")
        .iter()
        .filter_map(|code| code["kernel"].as_str())
        .collect();
    assert!(launches.iter().all(|launch| {
        code.contains(&launch["kernel"].as_str().unwrap_or_default()) && launch["ns"].is_u64()
    }));
    assert_eq!(
        launches.len() as u64,
        receipt["totals"]["launches"].as_u64().unwrap_or(0) / 500
    );
}

#[test]
fn the_main_job_balances_on_vulkan_with_one_transfer_each_way() {
    let place = Place::new("main-job-vulkan");
    if !text(&place.tectum("devices --json").stdout).contains("vulkan:0") {
        println!("skipped: no Vulkan device: the main job on it");
        return;
    }
    let summary = place
        .json("run pendulum --seconds 10 --seed 1 --clock sim --device vulkan:0 --no-plots --json");
    assert_eq!(
        summary["transfers_per_tick"],
        serde_json::json!({"up": 1, "down": 1})
    );
    assert!(
        summary["upright_fraction"].as_f64() >= Some(0.6),
        "{summary}"
    );
    assert_eq!(summary["device"].as_str(), Some("vulkan:0"));
}

#[test]
fn a_killed_run_resumes_from_its_last_snapshot() {
    let place = Place::new("killed");
    place.write("scenarios/short.toml", "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 20\nsnapshot_every = 5\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tectum"))
        .args(["run", "short", "--quiet"])
        .env("NODEVICE_SELECT", "1")
        .current_dir(&place.0)
        .spawn()
        .expect("the binary starts");
    let partial = place.0.join("runs/1.partial");
    // The recording reaches the disk with each snapshot; so much of it is more than five ticks.
    while std::fs::metadata(partial.join("trace.mcap")).map_or(0, |facts| facts.len()) < 20_000 {
        assert!(
            child.try_wait().expect("waits").is_none(),
            "the run ended before its first snapshot"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("running");
    child.wait().expect("killed");
    let summary = place.json("run --resume runs/1.partial --clock sim --no-plots --json");
    assert!(summary["resumed_at_tick"].as_u64() >= Some(5), "{summary}");
    assert_eq!(
        (summary["ticks"].as_u64(), summary["end"].as_str()),
        (Some(500), Some("completed"))
    );
}

#[test]
fn an_injected_fault_is_in_the_receipt_with_what_it_cost() {
    let place = Place::new("inject");
    let summary = place.json("run pendulum --seconds 8 --clock sim --no-plots --json --inject device-lost@2 --inject nan@4");
    assert_eq!(
        (
            summary["end"].as_str(),
            summary["recoveries"].as_u64(),
            summary["fallbacks"].as_u64()
        ),
        (Some("completed"), Some(2), Some(2))
    );
    let receipt = std::fs::read(folder(&place, &summary).join("receipt.json")).expect("there");
    let receipt: Value = serde_json::from_slice(&receipt).expect("JSON");
    assert_eq!(
        receipt["injected"][1],
        serde_json::json!({"fault": "nan@4", "tick": 100})
    );
    // From the early snapshot of tick 32.
    let recovery = &receipt["recoveries"][0];
    assert_eq!(
        (
            recovery["tick"].as_u64(),
            recovery["ticks_lost"].as_u64(),
            recovery["injected"].as_bool()
        ),
        (Some(50), Some(19), Some(true))
    );
}

#[test]
fn the_route_is_explained_and_measured_once() {
    let place = Place::new("route");
    let explained = place.json("explain route --json");
    let choices = explained["choices"].as_array().expect("a list");
    let names: Vec<_> = choices
        .iter()
        .filter_map(|choice| choice["plan"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "pendulum: control tick",
            "pendulum: training step",
            "gemm:64",
            "gemm:1024",
            "add:1k",
            "add:16M"
        ]
    );
    for device in explained["devices"].as_array().expect("a list") {
        assert!(
            device["rates"]["flop_per_s"].as_f64() > Some(0.0),
            "{device}"
        );
        let chosen = choices
            .iter()
            .any(|choice| choice["device"] == device["id"]);
        assert!(
            !(chosen && device["software"].as_bool() == Some(true)),
            "{device} is software"
        );
        for choice in choices.iter().filter(|_| device["software"] == true) {
            let thought = choice["predicted"]
                .as_array()
                .and_then(|all| all.iter().find(|one| one["device"] == device["id"]));
            assert_eq!(
                thought.expect("thought of")["refused"],
                "a software adapter is never chosen"
            );
        }
    }
    let again = place.json("explain route gemm:64 --json");
    assert_eq!(
        again["devices"], explained["devices"],
        "rates come from the cache"
    );
    // Device code is stored next to it if a device needs it as text.
    assert_eq!(
        names_of_cache(&place)
            .into_iter()
            .filter(|name| name != "code")
            .collect::<Vec<_>>(),
        ["calibration.json"]
    );
    place.write("cache/tectum/calibration.json", "{");
    let measured = place.json("explain route add:1k --json");
    assert_ne!(
        measured["devices"], explained["devices"],
        "a broken cache is measured again"
    );
    assert!(text(&place.tectum("explain route").stdout).contains("pendulum: control tick -> "));
}

fn names_of_cache(place: &Place) -> Vec<String> {
    names(&place.0.join("cache/tectum"))
}

#[test]
fn verification_passes_on_the_cpu_and_names_the_case_where_nothing_is_computed() {
    let place = Place::new("verify");
    let report = place.json("verify --device cpu --seed 7 --json");
    assert!(
        report["failures"].as_array().is_some_and(Vec::is_empty)
            && report["cases"].as_u64() > Some(400)
    );
    let output = place.tectum("verify --device null");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("error: null: fill: "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn built_in_scenarios_and_programs_need_no_repository() {
    let place = Place::new("built-in");
    let rows = place.json("scenario list --json");
    let names: Vec<&str> = rows
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert!(
        names.contains(&"pendulum") && names.contains(&"seeker"),
        "{names:?}"
    );
    assert!(
        rows.as_array()
            .expect("a list")
            .iter()
            .all(|row| row["about"].as_str().is_some_and(|about| about.len() > 20)),
        "{rows}"
    );
    let shown = text(&place.tectum("scenario show pendulum").stdout);
    assert_eq!(
        text(&place.tectum("scenario write pendulum").stdout),
        "pendulum.toml\n"
    );
    assert_eq!(
        std::fs::read_to_string(place.0.join("pendulum.toml")).expect("written"),
        shown
    );
    for (line, code, message) in [
        ("scenario write pendulum", 2, "pendulum.toml exists"),
        (
            "scenario show pendulm",
            2,
            "\"pendulm\" is not built in; built in: pendulum, ",
        ),
        ("run absent/relu.atlas", 7, "absent/relu.atlas"),
    ] {
        let output = place.tectum(line);
        assert!(
            text(&output.stderr).contains(message) && output.status.code() == Some(code),
            "{line}: {}",
            text(&output.stderr)
        );
    }
    assert!(text(&place.tectum("check relu.atlas").stdout).contains("relu.atlas: "));
    assert!(place.tectum("explain matvec.atlas").status.success());
}

#[test]
fn results_are_on_standard_output_and_all_else_on_standard_error() {
    let place = Place::new("streams");
    let run = "run pendulum --brain lqr --clock sim --seconds 1 --device cpu --no-plots";
    let outputs = [
        "",
        " --json",
        " --quiet",
        " --quiet --json",
        " --verbose --json",
    ]
    .map(|options| {
        let output = place.tectum(&format!("{run}{options}"));
        assert!(
            output.status.success(),
            "{options}: {}",
            text(&output.stderr)
        );
        [text(&output.stdout), text(&output.stderr)]
    });
    let [plain, json, quiet, quiet_json, verbose] = outputs;
    let is_json =
        |text: &str| text.lines().count() == 1 && serde_json::from_str::<Value>(text).is_ok();
    assert!(
        plain[0].contains("ticks") && plain[1].is_empty(),
        "{plain:?}"
    );
    assert!(is_json(&json[0]) && json[1].contains("ticks"), "{json:?}");
    assert_eq!(quiet, ["", ""]);
    assert!(
        is_json(&quiet_json[0]) && quiet_json[1].is_empty(),
        "{quiet_json:?}"
    );
    assert!(is_json(&verbose[0]), "{verbose:?}");
    // Devices are listed, including Vulkan's driver if present: none of its messages gets through.
    let devices = place.tectum("devices --json");
    assert_eq!(text(&devices.stderr), "");
    assert_eq!(
        place.tectum("run pendulum --quiet --verbose").status.code(),
        Some(2)
    );
}

#[test]
fn a_log_reports_what_was_opened_chosen_and_replaced() {
    let place = Place::new("log");
    let run =
        "run cart_pole --brain field --clock sim --seconds 0.4 --no-plots --json --inject nan@0.2";
    let logged = |options: &str, filter: Option<&str>| {
        let mut command = place.command(&format!("{run} {options}"));
        if let Some(filter) = filter {
            command.env("RUST_LOG", filter);
        }
        let output = command.output().expect("the binary starts");
        assert!(
            output.status.success(),
            "{options}: {}",
            text(&output.stderr)
        );
        text(&output.stderr)
    };
    assert_eq!(
        logged("--quiet", None),
        "",
        "nothing is logged unless it is requested"
    );
    let found = logged("-v", None);
    for part in [
        "INFO tectum_control::scenario: scenario read name=\"cart_pole\"",
        "device chosen",
        "WARN tectum::receipt: fallback what=",
        "recovery tick=",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    // Standard error is no terminal here.
    assert!(
        !found.contains("plan compiled") && !found.contains("\u{1b}"),
        "{found}"
    );
    assert!(logged("-vv", None).contains("DEBUG tectum::plan::executable: plan compiled plan="));
    // The variable replaces what the options select.
    let warned = logged("-vv", Some("tectum=warn"));
    assert!(
        warned.contains("WARN") && !warned.contains("INFO") && !warned.contains("DEBUG"),
        "{warned}"
    );
    let refused = place
        .command("devices")
        .env("RUST_LOG", "tectum=loud")
        .output()
        .expect("the binary starts");
    assert!(
        refused.status.code() == Some(2)
            && text(&refused.stderr).contains("RUST_LOG: \"tectum=loud\""),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn shells_and_manuals_get_what_the_command_takes() {
    let place = Place::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let completions = text(&place.tectum(&format!("completions {shell}")).stdout);
        assert!(
            completions.contains("tectum") && completions.contains("freeze-idle"),
            "{shell}: {completions}"
        );
    }
    let page = text(&place.tectum("man run").stdout);
    assert!(
        page.starts_with(".ie") && page.contains("tectum\\-run") && page.contains("\\-\\-seconds"),
        "{page}"
    );
    assert!(text(&place.tectum("man walk").stderr).contains("no subcommand walk"));
    let help = text(&place.tectum("--help").stdout);
    let codes: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Exit codes:")
        .skip(1)
        .collect();
    assert_eq!(codes.len(), 9, "{help}");
    assert!(codes[2].starts_with("  2 ") && place.tectum("run --seconds").status.code() == Some(2));
}

/// The flag comes before the variable. Receipts name the number, and no result depends on it.
#[test]
fn threads_are_set_by_a_flag_or_a_variable() {
    let place = Place::new("threads");
    place.write("brain.json", GENOME);
    let run = |variables: &[(&str, &str)], line: &str| {
        let output = place.tectum_with(variables, line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let two = [("TECTUM_THREADS", "2")];
    assert_eq!(
        run(&two, "devices --json")["devices"][0]["compute_units"],
        2
    );
    let line = "run brain.json --bursts 200 --stimulus 0.2 --device cpu --quiet --json";
    let found = [
        run(&two, line),
        run(&two, &format!("{line} --threads 1")),
        run(&[], &format!("{line} --threads 3")),
    ];
    assert_eq!(
        found
            .each_ref()
            .map(|found| found["receipt"]["device"]["compute_units"].as_u64()),
        [Some(2), Some(1), Some(3)]
    );
    assert!(
        found
            .iter()
            .all(|other| other["spike_hash"] == found[0]["spike_hash"]),
        "{found:?}"
    );
    let line = "run pendulum --seconds 1 --clock sim --device cpu --no-plots --quiet --json --receipt r.json";
    let traces = ["1", "2", "3"].map(|threads| {
        run(&[("TECTUM_THREADS", threads)], line);
        let receipt: Value = serde_json::from_str(
            &std::fs::read_to_string(place.0.join("r.json")).expect("written"),
        )
        .expect("JSON");
        assert_eq!(receipt["device"]["compute_units"].to_string(), threads);
        receipt["trace"].clone()
    });
    assert!(
        traces
            .iter()
            .all(|trace| trace.is_string() && *trace == traces[0]),
        "{traces:?}"
    );
    for (variables, line, message) in [
        (
            &[("TECTUM_THREADS", "0")][..],
            "devices",
            "TECTUM_THREADS: 0 is no number of threads from 1 to 1024",
        ),
        (
            &[("TECTUM_THREADS", "two")],
            "run brain.json --device cpu",
            "TECTUM_THREADS: \"two\" is no number of threads",
        ),
        (
            &[("TECTUM_THREADS", "")],
            "run pendulum",
            "TECTUM_THREADS: \"\" is no number of threads",
        ),
        (&[], "run brain.json --threads 0", "'--threads <N>'"),
        (&[], "verify --threads 1025", "'--threads <N>'"),
    ] {
        let output = place.tectum_with(variables, line);
        assert!(
            output.status.code() == Some(2) && text(&output.stderr).contains(message),
            "{line}: {}",
            text(&output.stderr)
        );
    }
}
