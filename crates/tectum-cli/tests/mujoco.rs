//! MuJoCo bodies from a scenario to a run folder: traces, kills, faults of the process, pictures.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Interpreter of the checkout if it has one, else the machine's, if it has MuJoCo.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python3");
    let python = std::env::var_os("TECTUM_PYTHON").map_or(own, PathBuf::from);
    let python = if python.is_file() {
        python
    } else {
        "python3".into()
    };
    let has_modules = Command::new(&python)
        .args(["-c", "import mujoco, numpy"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_modules {
        println!("skipped: python with mujoco and NumPy: a body that MuJoCo steps");
    }
    has_modules.then_some(python)
}

/// A folder with the scenes, removed at the end.
struct Place {
    folder: tempfile::TempDir,
    python: PathBuf,
}

const QUADRUPED: &str = "keyframe = \"stand\"\nperiod = 0.02\ntime_limit = 40\n\
    [body.noise]\nposition = 0.02\nvelocity = 0.1\n\
    [body.terminate]\nheight = [0.15, 1.0]\ntilt = 1.0\n\"joint_vel.*\" = [-100, inf]\n\
    [body.reward]\nalive = 1.0\nprogress = \"base_pos.x\"\ncontrol = 0.001\n";
const PUSH: &str = "[body.push]\nbody = \"trunk\"\nforce = [0, 90, 0]\nseconds = 0.1\n";

impl Place {
    fn new() -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().expect("a folder");
        let scenes =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tectum-control/tests/data/mujoco");
        for entry in std::fs::read_dir(scenes).expect("scenes") {
            let path = entry.expect("readable").path();
            std::fs::copy(&path, folder.path().join(path.file_name().expect("a file")))
                .expect("a copy");
        }
        Some(Self { folder, python })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a scenario of a scene with keys of `[body]`, and of the loop.
    fn scenario(&self, scene: &str, keys: &str, run: &str) {
        let text = format!(
            "[body]\nname = \"mujoco:{scene}\"\n{keys}[brain]\nname = \"zero\"\n[loop]\nclock = \"sim\"\nsnapshot_every = 20\n{run}"
        );
        std::fs::write(self.path("run.toml"), text).expect("writable");
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        command
            .current_dir(self.folder.path())
            .env("TECTUM_PYTHON", &self.python)
            .args(line.split_whitespace())
            .stdin(Stdio::null());
        command
    }

    fn tectum(&self, line: &str) -> Output {
        self.command(line).output().expect("it starts")
    }

    fn json(&self, line: &str) -> Value {
        let output = self.tectum(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        serde_json::from_slice(&output.stdout).expect("JSON alone")
    }

    /// What a command that fails with a code prints.
    fn refused(&self, line: &str, code: i32) -> String {
        let output = self.tectum(line);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {errors}");
        errors
    }

    /// An interpreter that is a script of the shell.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        let mut file = std::fs::File::create(&path).expect("writable");
        writeln!(file, "#!/bin/sh\n{text}").expect("writable");
        drop(file);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("writable");
        path.display().to_string()
    }
}

fn receipt(folder: &Path) -> Value {
    let text = std::fs::read(folder.join("receipt.json")).expect("a receipt");
    serde_json::from_slice(&text).expect("JSON")
}

/// The processes that a process started.
fn children(of: &Child) -> Vec<u32> {
    let parent = |entry: std::io::Result<std::fs::DirEntry>| {
        let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let parent = text
            .rsplit(')')
            .next()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some((process, parent))
    };
    let all = std::fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(parent);
    all.filter(|(_, parent): &(u32, u32)| *parent == of.id())
        .map(|(process, _)| process)
        .collect()
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_running(process: u32) -> bool {
    // A process that has ended and is not yet waited for has the state Z.
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|text| !text.contains(") Z "))
}

#[test]
fn a_run_is_repeated_exactly_and_its_receipt_names_what_was_read() {
    let Some(place) = Place::new() else { return };
    place.scenario("quadruped.xml", QUADRUPED, "seconds = 4\n");
    let summary = place.json("run run.toml --json --no-plots");
    assert_eq!(
        (&summary["ticks"], &summary["end"]),
        (&200.into(), &"completed".into())
    );
    assert!(summary["ended_episodes"].as_u64() >= Some(4), "{summary}");
    assert!(
        summary.get("upright_fraction").is_none() && summary.get("on_target_fraction").is_none()
    );
    let receipt = receipt(&place.path("runs/1"));
    let inputs = receipt["inputs"].as_array().expect("files");
    let has = |part: &str| {
        inputs
            .iter()
            .any(|input| input["path"].as_str().expect("a path").contains(part))
    };
    assert!(
        has("/quadruped.xml") && has("/plate.stl") && has("libmujoco"),
        "{inputs:?}"
    );
    assert!(
        receipt["workload"]["body_versions"]["mujoco"].is_string(),
        "{receipt}"
    );
    // From another folder: the scene is found again.
    let folder = place.path("runs/1");
    let check = Command::new(env!("CARGO_BIN_EXE_tectum"))
        .args(["receipt", "check", "--rerun", "--json"])
        .arg(&folder)
        .env("TECTUM_PYTHON", &place.python)
        .current_dir(std::env::temp_dir())
        .output()
        .expect("it starts");
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stderr)
    );
    // With another mesh it is another model.
    std::fs::copy(place.path("plate.stl"), place.path("kept.stl")).expect("a copy");
    let mut mesh = std::fs::read(place.path("plate.stl")).expect("a mesh");
    mesh[100] ^= 1;
    std::fs::write(place.path("plate.stl"), mesh).expect("writable");
    let changed = place.refused("run --resume runs/1 --seconds 5 --no-plots", 3);
    assert!(
        changed.contains("plate.stl: it has changed since the run"),
        "{changed}"
    );
    std::fs::copy(place.path("kept.stl"), place.path("plate.stl")).expect("a copy");
    let files = place.path("runs/1/body.files");
    let text = std::fs::read_to_string(&files).expect("written");
    let version = receipt["workload"]["body_versions"]["mujoco"]
        .as_str()
        .expect("text");
    std::fs::write(
        &files,
        text.replace(&format!("mujoco = \"{version}\""), "mujoco = \"1.0.0\""),
    )
    .expect("writable");
    let other = place.refused("run --resume runs/1 --seconds 5 --no-plots", 3);
    assert!(other.contains("-m pip install mujoco==1.0.0"), "{other}");
}

#[test]
fn a_killed_run_leaves_no_process_and_continues_exactly() {
    let Some(place) = Place::new() else { return };
    let keys = QUADRUPED.to_owned() + PUSH;
    place.scenario("quadruped.xml", &keys, "seconds = 8\n");
    let whole = place.json("run run.toml --json --no-plots");
    let mut killed = place.command("run run.toml --no-plots --runs killed");
    killed.stderr(Stdio::null()).stdout(Stdio::null());
    let mut killed = killed.spawn().expect("it starts");
    let partial = place.path("killed/1.partial");
    wait_for("a snapshot", || {
        partial.join("snapshot.safetensors").exists()
    });
    let started = children(&killed);
    assert!(!started.is_empty());
    killed.kill().expect("it runs");
    killed.wait().expect("it ended");
    for process in started {
        wait_for("the process ends with the command", || !is_running(process));
    }
    assert!(partial.exists(), "it was killed before its end");
    let resumed = place.json("run --resume killed/1.partial --json --no-plots --runs again");
    assert!(resumed["resumed_at_tick"].as_u64() < Some(400), "{resumed}");
    for key in [
        "return",
        "ticks",
        "episodes",
        "terminated_episodes",
        "episode_return",
    ] {
        assert_eq!(whole[key], resumed[key], "{key}");
    }
    let state = |folder: &str| {
        std::fs::read(place.path(folder).join("snapshot.safetensors")).expect("there")
    };
    assert!(state("runs/1") == state("again/1"));
}

#[test]
fn a_push_is_a_fault_of_a_body_that_states_one() {
    let Some(place) = Place::new() else { return };
    place.scenario(
        "quadruped.xml",
        "keyframe = \"stand\"\nperiod = 0.02\n",
        "seconds = 1\n",
    );
    let refused = place.refused("run run.toml --no-plots --inject push@0.4", 2);
    assert!(
        refused.contains("inject push@0.4: body mujoco:quadruped.xml cannot be pushed"),
        "{refused}"
    );
    let keys = format!(
        "keyframe = \"stand\"\nperiod = 0.02\n[body.reward]\nprogress = \"base_pos.y\"\n{PUSH}"
    );
    place.scenario("quadruped.xml", &keys, "seconds = 1\n");
    let still = place.json("run run.toml --no-plots --json");
    let pushed = place.json("run run.toml --no-plots --json --inject push@0.4");
    let moved = |summary: &Value| 0.02 * summary["return"].as_f64().expect("a number");
    assert!(moved(&pushed) - moved(&still) > 0.1, "{pushed}");
    assert_eq!(receipt(&place.path("runs/2"))["injected"][0]["tick"], 20);
}

#[test]
fn a_process_that_dies_hangs_or_answers_nonsense_ends_the_run_with_one_error() {
    let Some(place) = Place::new() else { return };
    let python = place.python.display().to_string();
    let of_python = |script: String, wait_s: u32| {
        let keys = format!("python = \"{script}\"\nwait = {wait_s}\n");
        place.scenario("hopper.xml", &keys, "seconds = 1\n");
        "run run.toml --no-plots"
    };
    // Killed in the middle of a run.
    place.scenario("hopper.xml", "period = 0.01\n", "seconds = 20\n");
    let mut run = place.command("run run.toml --no-plots --clock real --runs middle");
    run.stderr(Stdio::piped()).stdout(Stdio::null());
    let run = run.spawn().expect("it starts");
    let snapshot = place.path("middle/1.partial/snapshot.safetensors");
    wait_for("a snapshot", || snapshot.exists());
    for process in children(&run) {
        let kill = Command::new("kill")
            .args(["-9", &process.to_string()])
            .status();
        assert!(kill.is_ok_and(|status| status.success()));
    }
    let ended = run.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("the process that steps MuJoCo failed: it ended (signal: 9"),
        "{errors}"
    );
    assert_eq!(
        errors
            .matches("the process that steps MuJoCo failed")
            .count(),
        1,
        "{errors}"
    );
    assert!(
        place.path("middle/1/summary.json").exists(),
        "the folder is complete"
    );
    place.json("run --resume middle/1 --seconds 21 --json --no-plots --clock sim");
    // It dies at once, hangs, or prints something else.
    for (script, expected) in [
        (
            "echo cannot go on >&2; exit 3",
            "it ended (exit status: 3) instead of answering \"hello\"; its last output:\ncannot go on",
        ),
        (
            "exec sleep 100",
            "it gave no answer to \"hello\" within 2 s, and was ended",
        ),
        (
            "echo this is not a message at all; exec sleep 100",
            "its answer to \"hello\" is not readable: message: a frame of",
        ),
    ] {
        let line = of_python(place.script("script", script), 2);
        let start = Instant::now();
        let errors = place.refused(line, 3);
        assert!(errors.contains(expected), "{errors}");
        assert!(start.elapsed() < Duration::from_secs(20), "{script}");
    }
    // Without packages, and without an interpreter.
    let line = of_python(
        place.script("bare", &format!("exec {python} -S \"$@\"")),
        60,
    );
    let errors = place.refused(line, 4);
    assert!(
        errors.contains("a MuJoCo body needs mujoco and NumPy")
            && errors.contains("-m pip install mujoco numpy"),
        "{errors}"
    );
    let errors = place.refused(of_python(place.path("none").display().to_string(), 60), 7);
    assert!(
        errors
            .contains("/none cannot be started; a MuJoCo body needs Python with mujoco and NumPy"),
        "{errors}"
    );
}

#[test]
fn scenes_and_keys_that_are_wrong_are_refused_with_the_reason() {
    let Some(place) = Place::new() else { return };
    std::fs::write(
        place.path("broken.xml"),
        "<mujoco><worldbody><geom/></mujoco>",
    )
    .expect("writable");
    for (scene, keys, code, expected) in [
        (
            "none.xml",
            "",
            2,
            "body mujoco:none.xml: none.xml: there is no such file",
        ),
        (
            "broken.xml",
            "",
            2,
            "broken.xml: MuJoCo cannot read it: XML parse error",
        ),
        (
            "hopper.xml",
            "channels = [\"joint_pos.hipp\"]\n",
            2,
            "channel 'joint_pos.hipp' is unknown, perhaps 'joint_pos.hip'",
        ),
        (
            "hopper.xml",
            "perod = 0.01\n",
            3,
            "run.toml:3: unknown key \"perod\", perhaps \"period\"",
        ),
        (
            "hopper.xml",
            "start = \"hanging\"\n",
            3,
            "start \"hanging\" is not known",
        ),
        (
            "hopper.xml",
            "[body.push]\nbody = \"torso\"\n",
            3,
            "[body.push] force needs three numbers",
        ),
        (
            "hopper.xml",
            "[body.terminate]\ntilt = -1\n",
            3,
            "run.toml:4: tilt is -1, needs a number above 0",
        ),
        (
            "hopper.xml",
            "[body.disturbances]\nnoise = 1\n",
            3,
            "no disturbances",
        ),
    ] {
        place.scenario(scene, keys, "seconds = 1\n");
        let errors = place.refused("run run.toml --no-plots", code);
        assert!(errors.contains(expected), "{keys}: {errors}");
    }
    assert!(!place.path("runs").exists(), "nothing is left");
}

#[test]
fn pictures_and_a_video_of_the_run_are_in_its_folder() {
    let Some(place) = Place::new() else { return };
    place.scenario(
        "quadruped.xml",
        "keyframe = \"stand\"\nperiod = 0.02\ncamera = \"side\"\n",
        "seconds = 0.6\n",
    );
    let output = place.tectum("run run.toml --no-plots --frames 0.2 --video --json");
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && errors.contains("OpenGL cannot be used") {
        println!("skipped: EGL or OSMesa: pictures of a body that MuJoCo steps");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let bytes = |name: &str| std::fs::read(place.path("runs/1").join(name)).expect("written");
    let (first, last) = (bytes("frames/00000.png"), bytes("frames/00002.png"));
    assert!(first.starts_with(b"\x89PNG") && first != last);
    assert!(!place.path("runs/1/frames/00003.png").exists());
    let video = bytes("video.png");
    let frames = video.windows(4).filter(|window| window == b"fcTL").count();
    assert_eq!(frames, 3);
    let refused = place.refused(
        "run pendulum --seconds 1 --clock sim --no-plots --frames 0.1",
        4,
    );
    assert!(
        refused.contains("frames: body rig has no pictures"),
        "{refused}"
    );
}

/// The walk of `docs/deployment.md`: a contract from `deploy.yaml`, a policy at 50 Hz, motors at
/// 500 Hz, a start without the policy, and damping after the emergency stop.
#[test]
fn a_contract_of_a_deployment_drives_the_motors_of_a_scene() {
    let Some(place) = Place::new() else { return };
    let succeeds = |line: &str| {
        let output = place.tectum(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
    };
    succeeds("sample write locomotion-policy walk");
    succeeds("init walk/policy.onnx --from walk/deploy.yaml --body mujoco:walk/scene.xml");
    let mut contract = std::fs::read_to_string(place.path("walk/policy.toml")).expect("written");
    contract += "[[motors.start]]\nstate = \"move\"\nseconds = 0.5\n[motors.safe]\nstate = \"damping\"\ndamping = 3.0\n";
    std::fs::write(place.path("walk/policy.toml"), contract).expect("writable");
    let scenario = |keys: &str| {
        let text = format!(
            "[body]\nname = \"mujoco:walk/scene.xml\"\nkeyframe = \"stand\"\n[body.terminate]\nheight = [0.3, 1.0]\ntilt = 0.5\n[brain]\nname = \"policy\"\nmodel = \"walk/policy.onnx\"\n[loop]\nclock = \"sim\"\nsnapshot_every = 20\n{keys}"
        );
        std::fs::write(place.path("run.toml"), text).expect("writable");
    };
    // It stands, as its gains hold it; without the motors it would fall.
    scenario("seconds = 3\n");
    let summary = place.json("run run.toml --device cpu --json --no-plots");
    let motors = summary["motor_period_ms"].as_f64().expect("a number");
    assert_eq!((&summary["period_ms"], motors.round()), (&20.0.into(), 2.0));
    assert_eq!(summary["ended_episodes"], 0, "{summary}");
    let first = receipt(&place.path("runs/1"));
    // The same run by a scenario that is continued half-way.
    scenario("seconds = 1.5\n");
    place.json("run run.toml --device cpu --json --no-plots");
    let resumed = place.json("run --resume runs/2 --seconds 3 --device cpu --json --no-plots");
    assert_eq!(resumed["ticks"], 150);
    let state = |run: &str| std::fs::read(place.path(run).join("snapshot.safetensors"));
    let folder = resumed["run_folder"].as_str().expect("a folder");
    assert_eq!(
        state("runs/1").expect("a snapshot"),
        state(folder).expect("a snapshot")
    );
    succeeds("receipt check --rerun runs/1");
    assert!(first["trace"].is_string(), "{first}");
    // After the stop the motors damp: the robot sinks and its episode ends.
    scenario("seconds = 3\n");
    let stopped = place.json("run run.toml --device cpu --json --no-plots --inject stop@1");
    assert_eq!(stopped["emergency_stop_tick"], 50, "{stopped}");
    assert!(stopped["ended_episodes"].as_u64() > Some(0), "{stopped}");
}
