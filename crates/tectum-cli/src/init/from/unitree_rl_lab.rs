//! `deploy.yaml` of unitree_rl_lab and its fork for mjlab.
//!
//! `joint_ids_map[i]` is the motor of the policy's joint i. Default positions and the action's
//! scale, offset and clip are in the policy's order, stiffness and damping in that of the motors.

use tectum::Result;
use tectum_control::body::motors::MotorRule;
use tectum_control::brain::policy::contract::Contract;
use tectum_control::brain::policy::contract::action::ActionRule;
use tectum_control::brain::policy::contract::clock::ClockRule;
use tectum_control::brain::policy::contract::command::CommandRule;
use tectum_control::brain::policy::contract::history::{Fill, History};
use tectum_control::brain::policy::contract::input::InputRule;
use tectum_control::brain::policy::contract::term::{
    QuaternionOrder, Term, TermFunction, TermSource, TermStep,
};

use super::yaml::Node;
use super::{Around, joints};

/// The commands of `base_velocity`, in the order of the term.
const VELOCITIES: [(&str, &str); 3] = [
    ("lin_vel_x", "m/s"),
    ("lin_vel_y", "m/s"),
    ("ang_vel_z", "rad/s"),
];

/// The policy's joints: names, and default positions.
struct Joints {
    names: Vec<String>,
    default: Vec<f64>,
}

pub fn contract(root: &Node<'_>, around: Around<'_>) -> Result<Contract> {
    let mut contract = Contract {
        period_s: Some(root.need("step_dt")?.number()?),
        action: ActionRule {
            chunk: 1,
            ..ActionRule::default()
        },
        ..Contract::default()
    };
    let joints = read_joints(root, around, &mut contract)?;
    read_actions(root, &joints, &mut contract)?;
    read_commands(root, &mut contract)?;
    let observations = root.need("observations")?;
    let mut groups = vec![(None, observations.clone())];
    // The fork has a table for each input of the network.
    let is_group = |node: &Node<'_>| {
        let mut terms = node.entries().into_iter();
        node.get("params").is_none() && terms.any(|(_, term)| !term.entries().is_empty())
    };
    if observations
        .entries()
        .iter()
        .all(|(_, node)| is_group(node))
    {
        groups = observations
            .entries()
            .into_iter()
            .map(|(name, node)| (Some(name), node))
            .collect();
    }
    for (input, group) in groups {
        read_group(&group, input, &joints, &mut contract)?;
    }
    for (key, value) in root.entries() {
        let known = [
            "joint_ids_map",
            "step_dt",
            "stiffness",
            "damping",
            "default_joint_pos",
            "commands",
            "actions",
            "observations",
        ];
        if !known.contains(&key.as_str()) {
            contract.unread.push(format!("{key} ({:?})", value.value));
        }
    }
    Ok(contract)
}

fn read_joints(root: &Node<'_>, around: Around<'_>, contract: &mut Contract) -> Result<Joints> {
    let map_node = root.need("joint_ids_map")?;
    let map = map_node.indices()?;
    for (index, motor) in map.iter().enumerate() {
        if map[..index].contains(motor) {
            return Err(map_node.error(format_args!("it names the motor {motor} twice")));
        }
    }
    let motors = map.iter().max().map_or(0, |motor| motor + 1);
    let names = joints::names(around.body, motors, &mut contract.assumed);
    let names: Vec<String> = map.iter().map(|motor| names[*motor].clone()).collect();
    let default = root.need("default_joint_pos")?.numbers()?;
    let of_motors = |key: &str| -> Result<Vec<f64>> {
        let node = root.need(key)?;
        let gains = node.numbers()?;
        map.iter()
            .map(|motor| {
                gains.get(*motor).copied().ok_or_else(|| {
                    node.error(format_args!("it has no number for the motor {motor}"))
                })
            })
            .collect()
    };
    if default.len() != names.len() {
        return Err(root.error(format_args!(
            "default_joint_pos has {} numbers, joint_ids_map {}",
            default.len(),
            names.len()
        )));
    }
    contract.motors = Some(MotorRule {
        joints: Some(names.clone()),
        stiffness: of_motors("stiffness")?,
        damping: of_motors("damping")?,
        default: default.clone(),
        ..MotorRule::default()
    });
    contract
        .assumed
        .push("numbers of the file have three digits".to_owned());
    Ok(Joints { names, default })
}

fn read_actions(root: &Node<'_>, joints: &Joints, contract: &mut Contract) -> Result<()> {
    let actions = root.need("actions")?;
    let entries = actions.entries();
    let [(name, action)] = &entries[..] else {
        return Err(actions.error("one action is needed"));
    };
    if name != "JointPositionAction" {
        return Err(actions.error(format_args!(
            "{name} is not supported: the deployment registers JointPositionAction alone"
        )));
    }
    let numbers = |key: &str| -> Result<Vec<f64>> {
        action
            .get(key)
            .map_or(Ok(Vec::new()), |node| node.numbers())
    };
    contract.action = ActionRule {
        channels: Some(joints.names.clone()),
        scale: numbers("scale")?,
        offset: numbers("offset")?,
        // In radians, after the scale.
        clip_target: action
            .get("clip")
            .map_or(Ok(Vec::new()), |node| node.bounds())?,
        chunk: 1,
        ..ActionRule::default()
    };
    Ok(())
}

fn read_commands(root: &Node<'_>, contract: &mut Contract) -> Result<()> {
    let Some(commands) = root.get("commands") else {
        return Ok(());
    };
    for (name, command) in commands.entries() {
        if name != "base_velocity" {
            contract.unread.push(format!("command {name}"));
            continue;
        }
        let ranges = command.need("ranges")?;
        for (name, unit) in VELOCITIES {
            let range = ranges.need(name)?.bounds()?;
            contract.commands.push(CommandRule {
                name: name.to_owned(),
                value: 0.0,
                unit: Some(unit.to_owned()),
                range: range.first().copied().unwrap_or([-1.0, 1.0]),
                schedule: Vec::new(),
                is_linear: false,
            });
        }
        if ranges.get("heading").is_some() {
            contract.unread.push("command heading".to_owned());
        }
    }
    Ok(())
}

fn read_group(
    group: &Node<'_>,
    input: Option<String>,
    joints: &Joints,
    contract: &mut Contract,
) -> Result<()> {
    let is_whole = |node: &Node<'_>| {
        node.get("use_gym_history")
            .is_some_and(|flag| flag.value.as_bool() == Some(true))
    };
    let terms: Vec<_> = group
        .entries()
        .into_iter()
        .filter(|(_, term)| !term.entries().is_empty())
        .collect();
    let has_frames = is_whole(group) || terms.iter().any(|(_, term)| is_whole(term));
    let mut frames = 1;
    for (name, node) in terms {
        let mut term = read_term(&name, &node, joints, contract)?;
        term.input.clone_from(&input);
        let length = node
            .get("history_length")
            .map_or(Ok(1.0), |node| node.number())?;
        let length = length.max(1.0) as usize;
        if has_frames {
            frames = frames.max(length);
        } else if length > 1 {
            term.history = History::oldest_first(length);
            term.fill = Some(Fill::First);
        }
        contract.observation.push(term);
    }
    if frames > 1 {
        let name = input.unwrap_or_else(|| "obs".to_owned());
        contract.inputs.push(InputRule {
            frames: History::oldest_first(frames),
            fill: Some(Fill::First),
            ..InputRule::of(name)
        });
    }
    Ok(())
}

fn read_term(
    name: &str,
    node: &Node<'_>,
    joints: &Joints,
    contract: &mut Contract,
) -> Result<Term> {
    let own = node
        .get("params")
        .and_then(|params| params.get("asset_cfg")?.get("joint_ids"))
        .filter(|ids| {
            ids.value
                .as_vec()
                .is_some_and(|ids| ids.iter().all(|id| !id.is_null()))
        });
    let chosen = match own {
        Some(ids) => ids.indices()?,
        None => (0..joints.names.len()).collect(),
    };
    let of = |list: &[f64]| -> Vec<f64> {
        chosen
            .iter()
            .filter_map(|joint| list.get(*joint).copied())
            .collect()
    };
    let named: Vec<String> = chosen
        .iter()
        .filter_map(|joint| joints.names.get(*joint).cloned())
        .collect();
    if named.len() != chosen.len() {
        return Err(node.error("params: joint_ids names a joint that does not exist"));
    }
    let base = |channel: &str| Term::of_channels(vec![channel.to_owned()], name);
    let mut term = match name {
        "base_ang_vel" => base("base_ang_vel.*"),
        "base_lin_vel" => base("base_lin_vel.*"),
        "projected_gravity" => Term {
            function: TermFunction::Gravity,
            quaternion: Some(QuaternionOrder::Wxyz),
            ..base("base_quat.*")
        },
        "velocity_commands" => Term::of_channels(
            VELOCITIES
                .iter()
                .map(|(name, _)| format!("command.{name}"))
                .collect(),
            name,
        ),
        "joint_pos" => joints::term("joint_pos", &named, name),
        "joint_pos_rel" => Term {
            offset: of(&joints.default),
            ..joints::term("joint_pos", &named, name)
        },
        "joint_vel" | "joint_vel_rel" => joints::term("joint_vel", &named, name),
        "last_action" => Term {
            source: TermSource::PreviousAction(Default::default()),
            ..base("")
        },
        "gait_phase" => {
            let period_s = node.need("params")?.need("period")?.number()?;
            // The evaluation that a reset makes advances the phase, and each one advances it.
            let start = 2.0 * contract.period_s.unwrap_or(0.0) / period_s;
            let start = (start * 1e12).round() / 1e12;
            contract.clocks.push(ClockRule {
                name: "gait".to_owned(),
                period_s,
                offsets: vec![0.0],
                start,
                first: Vec::new(),
                is_reset: false,
                is_signed: false,
                standing: None,
            });
            Term {
                function: TermFunction::SinCos,
                ..base("clock.gait")
            }
        }
        _ => {
            return Err(node.error(format_args!(
                "the term is unknown; known: base_ang_vel, base_lin_vel, projected_gravity, velocity_commands, joint_pos, joint_pos_rel, joint_vel, joint_vel_rel, last_action, gait_phase"
            )));
        }
    };
    term.clip = node
        .get("clip")
        .map_or(Ok(Vec::new()), |node| node.bounds())?;
    term.scale = node
        .get("scale")
        .map_or(Ok(Vec::new()), |node| node.numbers())?;
    let is_scaled_first = node
        .get("scale_first")
        .is_some_and(|flag| flag.value.as_bool() == Some(true));
    term.apply = Some(if is_scaled_first {
        vec![
            TermStep::Function,
            TermStep::Offset,
            TermStep::Scale,
            TermStep::Clip,
        ]
    } else {
        TermStep::ORDER.to_vec()
    });
    Ok(term)
}
