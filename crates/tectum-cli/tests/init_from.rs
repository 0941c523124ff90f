//! Contracts from the files of frameworks: `init --from`.

use std::path::{Path, PathBuf};

use super::train::Place;

fn frameworks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frameworks")
}

/// The contract that a file gives, without comments and empty lines.
fn contract(place: &Place, file: &str, text: &str, line: &str) -> String {
    std::fs::write(place.0.join(file), text).expect("writable");
    place.text(&format!("init --from {file} {line} --out out.toml"));
    let written = std::fs::read_to_string(place.0.join("out.toml")).expect("written");
    std::fs::remove_file(place.0.join("out.toml")).expect("there");
    written
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn refusal(place: &Place, line: &str) -> String {
    let output = place.tectum(line);
    assert!(!output.status.success(), "{line}");
    assert!(!place.0.join("out.toml").exists(), "nothing is written");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const DEPLOY: &str = "joint_ids_map: [2, 0, 1]
step_dt: 0.02
stiffness: [10.0, 20.0, 30.0]
damping: [1.0, 2.0, 3.0]
default_joint_pos: [0.1, 0.8, -1.5]
commands:
  base_velocity:
    ranges:
      lin_vel_x: [-0.5, 1.0]
      lin_vel_y: [-0.3, 0.3]
      ang_vel_z: [-0.2, 0.2]
      heading: null
actions:
  JointPositionAction:
    clip: null
    joint_names:
    - .*
    scale: [0.25, 0.25, 0.5]
    offset: [0.1, 0.8, -1.5]
    joint_ids: null
observations:
  base_ang_vel:
    params: {}
    clip: [-100.0, 100.0]
    scale: [0.2, 0.2, 0.2]
    history_length: 5
  projected_gravity:
    params: {}
    clip: null
    scale: [1.0, 1.0, 1.0]
    history_length: 5
  velocity_commands:
    params: {command_name: base_velocity}
    clip: null
    scale: [1.0, 1.0, 1.0]
    history_length: 0
  joint_pos_rel:
    params:
      asset_cfg:
        joint_ids: !!python/object/apply:builtins.slice [null, null, null]
    clip: null
    scale: [1.0, 1.0, 1.0]
    history_length: 5
  joint_vel_rel:
    params:
      asset_cfg:
        joint_ids: [2, 0]
    clip: null
    scale: [0.05, 0.05]
    history_length: 1
  last_action:
    params: {}
    clip: null
    scale: [1.0, 1.0, 1.0]
    history_length: 5
  gait_phase:
    params: {period: 0.8}
    clip: null
    scale: [1.0, 1.0]
    history_length: 5
";

/// Gains are in the order of the motors, everything else in the policy's.
#[test]
fn deploy_yaml_of_unitree_rl_lab_is_a_contract() {
    let place = Place::new("from-rl-lab");
    let expected = r#"period = 0.02
[commands.lin_vel_x]
value = 0.0
range = [-0.5, 1.0]
unit = "m/s"
[commands.lin_vel_y]
value = 0.0
range = [-0.3, 0.3]
unit = "m/s"
[commands.ang_vel_z]
value = 0.0
range = [-0.2, 0.2]
unit = "rad/s"
[clocks.gait]
period = 0.8
offsets = [0.0]
start = 0.05
[[observation]]
channels = ["base_ang_vel.*"]
clip = [-100.0, 100.0]
scale = [0.2, 0.2, 0.2]
apply = ["function", "offset", "clip", "scale"]
history = 5
order = "oldest first"
fill = "first"
[[observation]]
channels = ["base_quat.*"]
function = "gravity"
quaternion = "wxyz"
apply = ["function", "offset", "clip", "scale"]
history = 5
order = "oldest first"
fill = "first"
[[observation]]
channels = ["command.lin_vel_x", "command.lin_vel_y", "command.ang_vel_z"]
apply = ["function", "offset", "clip", "scale"]
[[observation]]
channels = ["joint_pos.joint_2", "joint_pos.joint_0", "joint_pos.joint_1"]
offset = [0.1, 0.8, -1.5]
apply = ["function", "offset", "clip", "scale"]
history = 5
order = "oldest first"
fill = "first"
[[observation]]
channels = ["joint_vel.joint_1", "joint_vel.joint_2"]
scale = [0.05, 0.05]
apply = ["function", "offset", "clip", "scale"]
[[observation]]
source = "previous action"
apply = ["function", "offset", "clip", "scale"]
history = 5
order = "oldest first"
fill = "first"
[[observation]]
channels = ["clock.gait"]
function = "sin_cos"
apply = ["function", "offset", "clip", "scale"]
history = 5
order = "oldest first"
fill = "first"
[action]
channels = ["joint_2", "joint_0", "joint_1"]
scale = [0.25, 0.25, 0.5]
offset = [0.1, 0.8, -1.5]
[motors]
joints = ["joint_2", "joint_0", "joint_1"]
stiffness = [30.0, 10.0, 20.0]
damping = [3.0, 1.0, 2.0]
default = [0.1, 0.8, -1.5]
"#;
    assert_eq!(contract(&place, "deploy.yaml", DEPLOY, ""), expected);
    for (from, to, message) in [
        (
            "[2, 0, 1]",
            "[2, 0, 2]",
            "deploy.yaml: joint_ids_map: it names the motor 2 twice",
        ),
        (
            "gait_phase",
            "gait_clock",
            "observations: gait_clock: the term is unknown; known: base_ang_vel",
        ),
        ("step_dt: 0.02\n", "", "deploy.yaml: it has no step_dt"),
        (
            "JointPositionAction",
            "JointVelocityAction",
            "actions: JointVelocityAction is not supported",
        ),
        (
            "[10.0, 20.0, 30.0]",
            "[10.0, 20.0]",
            "stiffness: it has no number for the motor 2",
        ),
        (
            "joint_ids: [2, 0]",
            "joint_ids: [2, 7]",
            "joint_ids names a joint that does not exist",
        ),
    ] {
        std::fs::write(place.0.join("broken.yaml"), DEPLOY.replacen(from, to, 1))
            .expect("writable");
        let error = refusal(&place, "init --from broken.yaml --out out.toml");
        let message = message.replace("deploy.yaml", "broken.yaml");
        assert!(error.contains(&message), "{message}: {error}");
    }
}

const RL_SAR_BASE: &str = "go:
  dt: 0.005
  decimation: 4
  num_of_dofs: 3
  wheel_indices: [2]
  joint_mapping: [1, 0, 2]
  fixed_kp: [80.0, 80.0, 0.0]
  fixed_kd: [3.0, 3.0, 1.0]
  torque_limits: [33.5, 33.5, 15.0]
  default_dof_pos: [0.1, 0.8, 0.0]
";
const RL_SAR_POLICY: &str = "go/robot_lab:
  model_name: policy.onnx
  num_observations: 12
  observations: [\"ang_vel\", \"gravity_vec\", \"commands\", \"dof_pos\", \"dof_vel\", \"actions\"]
  observations_history: [5, 4, 3, 2, 1, 0]
  observations_history_priority: time
  clip_obs: 100.0
  clip_actions_lower: [-100, -100, -100]
  clip_actions_upper: [100, 100, 100]
  rl_kp: [20.0, 20.0, 0.0]
  rl_kd: [0.5, 0.5, 0.5]
  action_scale: [0.25, 0.25, 5.0]
  lin_vel_scale: 2.0
  ang_vel_scale: 0.25
  dof_pos_scale: 1.0
  dof_vel_scale: 0.05
  commands_scale: [2.0, 2.0, 0.25]
";

/// Values of a policy override those of its robot; wheels have velocities.
#[test]
fn yaml_files_of_rl_sar_are_a_contract() {
    let place = Place::new("from-rl-sar");
    std::fs::write(place.0.join("base.yaml"), RL_SAR_BASE).expect("writable");
    let expected = r#"period = 0.02
[commands.x]
value = 0.0
[commands.y]
value = 0.0
[commands.yaw]
value = 0.0
[inputs.obs]
frames = 6
order = "oldest first"
fill = "zeros"
clip = [-100.0, 100.0]
[[observation]]
channels = ["base_ang_vel.*"]
scale = 0.25
apply = ["function", "offset", "scale", "clip"]
[[observation]]
channels = ["base_quat.*"]
function = "gravity"
quaternion = "wxyz"
apply = ["function", "offset", "scale", "clip"]
[[observation]]
channels = ["command.x", "command.y", "command.yaw"]
scale = [2.0, 2.0, 0.25]
apply = ["function", "offset", "scale", "clip"]
[[observation]]
channels = ["joint_pos.joint_1", "joint_pos.joint_0", "joint_pos.joint_2"]
offset = [0.1, 0.8, 0.0]
scale = [1.0, 1.0, 0.0]
apply = ["function", "offset", "scale", "clip"]
[[observation]]
channels = ["joint_vel.joint_1", "joint_vel.joint_0", "joint_vel.joint_2"]
scale = 0.05
apply = ["function", "offset", "scale", "clip"]
[[observation]]
source = "previous action"
as = "clipped"
apply = ["function", "offset", "scale", "clip"]
[action]
channels = ["joint_1", "joint_0", "joint_2"]
clip = [[-100.0, 100.0], [-100.0, 100.0], [-100.0, 100.0]]
scale = [0.25, 0.25, 5.0]
offset = [0.1, 0.8, 0.0]
[motors]
joints = ["joint_1", "joint_0", "joint_2"]
control = ["position", "position", "velocity"]
stiffness = [20.0, 20.0, 0.0]
damping = [0.5, 0.5, 0.5]
torque_limit = [33.5, 33.5, 15.0]
default = [0.1, 0.8, 0.0]
"#;
    let own = contract(&place, "config.yaml", RL_SAR_POLICY, "--from base.yaml");
    assert_eq!(own, expected);
    let by_term = RL_SAR_POLICY.replace("priority: time", "priority: term");
    let own = contract(&place, "config.yaml", &by_term, "--from base.yaml");
    assert_eq!(
        own.matches("history = 6\norder = \"oldest first\"\n")
            .count(),
        6,
        "{own}"
    );
    assert!(!own.contains("frames"), "{own}");
    let unknown = RL_SAR_POLICY.replace("\"gravity_vec\"", "\"gravity_vector\"");
    std::fs::write(place.0.join("config.yaml"), unknown).expect("writable");
    let error = refusal(
        &place,
        "init --from config.yaml --from base.yaml --out out.toml",
    );
    assert!(
        error.contains("observations[1]: the observation \"gravity_vector\" is unknown"),
        "{error}"
    );
}

const ENV: &str = "sim:
  dt: 0.005
decimation: 4
scene:
  robot:
    init_state:
      joint_pos:
        .*hip.*: 0.1
        knee_motor: -0.4
    actuators:
      legs:
        joint_names_expr: [\".*_motor\"]
        effort_limit: 23.5
        velocity_limit: 30.0
        stiffness:
          hip_motor: 25.0
          knee.*: 40.0
        damping: 0.5
actions:
  joint_pos:
    class_type: isaaclab.envs.mdp.actions.joint_actions:JointPositionAction
    joint_names: [\".*\"]
    scale: 0.5
    use_default_offset: true
    clip: null
observations:
  policy:
    concatenate_terms: true
    history_length: null
    base_ang_vel:
      func: isaaclab.envs.mdp.observations:base_ang_vel
      params: !!python/tuple []
      clip: !!python/tuple [-10.0, 10.0]
      scale: 0.2
      history_length: 3
    joint_pos:
      func: isaaclab.envs.mdp.observations:joint_pos_rel
      clip: null
      scale: null
    actions:
      func: isaaclab.envs.mdp.observations:last_action
      clip: null
      scale: null
commands:
  base_velocity:
    ranges:
      lin_vel_x: !!python/tuple [-1.0, 1.0]
";

/// A body of two joints, whose actions are torques.
const PLANT: &str = include_str!("frameworks/legs.plant");

#[test]
fn env_yaml_of_isaac_lab_is_a_contract_of_a_body() {
    let place = Place::new("from-isaac");
    std::fs::write(place.0.join("legs.plant"), PLANT).expect("writable");
    std::fs::write(
        place.0.join("agent.yaml"),
        "policy: {}\nalgorithm: {}\nclip_actions: 100.0\nempirical_normalization: true\n",
    )
    .expect("writable");
    let expected = r#"period = 0.02
[commands.lin_vel_x]
value = 0.0
range = [-1.0, 1.0]
unit = "m/s"
[[observation]]
channels = ["base_ang_vel.*"]
clip = [-10.0, 10.0]
scale = 0.2
apply = ["function", "offset", "clip", "scale"]
history = 3
order = "oldest first"
fill = "first"
[[observation]]
channels = ["joint_pos.hip_motor", "joint_pos.knee_motor"]
offset = [0.1, -0.4]
apply = ["function", "offset", "clip", "scale"]
[[observation]]
source = "previous action"
as = "clipped"
apply = ["function", "offset", "clip", "scale"]
[action]
channels = ["hip_motor", "knee_motor"]
clip = [-100.0, 100.0]
scale = [0.5, 0.5]
offset = [0.1, -0.4]
[motors]
joints = ["hip_motor", "knee_motor"]
control = "position"
stiffness = [25.0, 40.0]
damping = [0.5, 0.5]
torque_limit = [23.5, 23.5]
default = [0.1, -0.4]
"#;
    let own = contract(
        &place,
        "env.yaml",
        ENV,
        "--from agent.yaml --body legs.plant",
    );
    assert_eq!(own, expected);
    let error = refusal(&place, "init --from env.yaml --out out.toml");
    assert!(
        error.contains("no list of joints: --body gives it"),
        "{error}"
    );
}

/// Statistics and bounds by the frameworks' own code.
#[test]
fn files_of_stable_baselines3_are_a_contract() {
    let place = Place::new("from-sb3");
    let folder = frameworks();
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("stats.json")).expect("there"))
            .expect("JSON");
    let numbers = |key: &str| {
        let list = stats[key].as_array().expect("a list");
        let list: Vec<f64> = list.iter().filter_map(serde_json::Value::as_f64).collect();
        format!("{list:?}")
    };
    let written = |line: &str| {
        place.text(&format!("init {line} --out out.toml"));
        let text = std::fs::read_to_string(place.0.join("out.toml")).expect("written");
        std::fs::remove_file(place.0.join("out.toml")).expect("there");
        text
    };
    let of = |name: &str| format!("--from {}", folder.join(name).display());
    let ppo = written(&format!("{} {}", of("ppo.zip"), of("vecnormalize.pkl")));
    for part in [
        "clip = [-2.0, 2.0]".to_owned(),
        "formula = \"var\"".to_owned(),
        format!("mean = {}", numbers("mean")),
        format!("var = {}", numbers("var")),
        "epsilon = 1e-8".to_owned(),
        "clip = 5.0".to_owned(),
        "channels = [\"channel_0\", \"channel_1\", \"channel_2\"]".to_owned(),
    ] {
        assert!(ppo.contains(&part), "{part}: {ppo}");
    }
    let sac = written(&of("sac.zip"));
    assert!(
        sac.contains("scale = 2.0") || sac.contains("scale = [2.0]"),
        "{sac}"
    );
    assert!(!sac.contains("normalize"), "{sac}");
    std::fs::write(
        place.0.join("evil.pkl"),
        b"\x80\x04cos\nsystem\n\x8c\x0atouch evil\x85R.",
    )
    .expect("writable");
    let error = refusal(&place, "init --from evil.pkl --out out.toml");
    assert!(
        error.contains("os.system, which is not among the names"),
        "{error}"
    );
    assert!(!place.0.join("evil").exists(), "nothing of it was executed");
}

#[test]
fn config_json_of_lerobot_is_a_contract() {
    let place = Place::new("from-lerobot");
    let folder = frameworks().join("lerobot/config.json");
    place.text(&format!("init --from {} --out out.toml", folder.display()));
    let text = std::fs::read_to_string(place.0.join("out.toml")).expect("written");
    for part in [
        "# Not read: input observation.images.top [3, 8, 8]: an image",
        "[inputs.\"observation.state\".normalize]\nformula = \"std\"",
        "epsilon = 1e-8",
        "input = \"observation.state\"",
        "chunk = 10\nreplan_steps = 4\n",
        "[action.unnormalize]\nformula = \"range\"\nmin = [-2.0]\nmax = [2.0]\n",
        "add `period`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn files_of_no_framework_are_refused() {
    let place = Place::new("from-others");
    for (file, text, message) in [
        (
            "a.yaml",
            "a: 1\n",
            "it is neither deploy.yaml of unitree_rl_lab",
        ),
        ("b.yaml", "a: [1\n", "b.yaml: no YAML"),
        ("c.yaml", "", "c.yaml: it is empty"),
        ("d.json", "{", "d.json: no JSON"),
        ("e.txt", "", "known are deploy.yaml"),
        ("f.zip", "PK", "no ZIP"),
        ("g.pkl", "\u{80}", "pickle, byte 0"),
    ] {
        std::fs::write(place.0.join(file), text).expect("writable");
        let error = refusal(&place, &format!("init --from {file} --out out.toml"));
        assert!(error.contains(message), "{file}: {error}");
    }
    // Each list names the one before ten times.
    let lists = (1..9).map(|level| {
        let before = vec![format!("*l{}", level - 1); 10].join(", ");
        format!("l{level}: &l{level} [{before}]\n")
    });
    let text = format!("l0: &l0 [0]\n{}", lists.collect::<String>());
    std::fs::write(place.0.join("aliases.yaml"), text).expect("writable");
    let error = refusal(&place, "init --from aliases.yaml --out out.toml");
    assert!(
        error.contains("aliases expand to more than 1000000 values"),
        "{error}"
    );
    let error = refusal(&place, "init --from missing.yaml --out out.toml");
    assert!(error.contains("missing.yaml"), "{error}");
}
