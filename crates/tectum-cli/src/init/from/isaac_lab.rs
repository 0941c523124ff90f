//! `params/env.yaml` and `params/agent.yaml` of Isaac Lab.
//!
//! The file has patterns of joint names, and no list of the joints: the body gives it, in the order
//! of its actions.

use tectum::{Error, Result};
use tectum_control::body::motors::rule::{Control, MotorRule};
use tectum_control::brain::policy::contract::Contract;
use tectum_control::brain::policy::contract::action::ActionRule;
use tectum_control::brain::policy::contract::command::CommandRule;
use tectum_control::brain::policy::contract::history::{Fill, History};
use tectum_control::brain::policy::contract::term::{
    ActionStage, QuaternionOrder, Term, TermFunction, TermSource, TermStep,
};

use super::yaml::Node;
use super::{Around, joints};

/// Keys of a group of observations that are no terms.
const GROUP_KEYS: [&str; 5] = [
    "concatenate_terms",
    "concatenate_dim",
    "enable_corruption",
    "history_length",
    "flatten_history_dim",
];

pub fn contract(root: &Node<'_>, agent: Option<&Node<'_>>, around: Around<'_>) -> Result<Contract> {
    let body = around.body.ok_or_else(|| {
        Error::invalid(
            "init: env.yaml has patterns of joint names and no list of joints: --body gives it",
        )
    })?;
    let names: Vec<String> = body
        .action
        .iter()
        .map(|channel| channel.name.clone())
        .collect();
    let period_s = root.need("sim")?.need("dt")?.number()? * root.need("decimation")?.number()?;
    let mut contract = Contract {
        period_s: Some(period_s),
        assumed: vec![format!(
            "the policy's joints are in the order of the body {}'s actions; Isaac Lab's own order is breadth-first",
            body.name
        )],
        ..Contract::default()
    };
    let robot = root.need("scene")?.need("robot")?;
    let default: Vec<f64> = match robot
        .get("init_state")
        .and_then(|node| node.get("joint_pos"))
    {
        Some(node) => joints::of_patterns(&node, &names)?
            .into_iter()
            .map(|value| value.unwrap_or(0.0))
            .collect(),
        None => vec![0.0; names.len()],
    };
    let clip_actions = agent
        .and_then(|agent| agent.get("clip_actions"))
        .map(|node| node.number())
        .transpose()?;
    read_action(root, &names, &default, clip_actions, &mut contract)?;
    read_actuators(&robot, &mut contract)?;
    read_commands(root, &mut contract)?;
    read_observations(root, &names, &default, clip_actions, &mut contract)?;
    if let Some(agent) = agent {
        let is_normalised = |key: &str| {
            agent
                .get(key)
                .or_else(|| agent.get("policy").and_then(|policy| policy.get(key)))
                .is_some_and(|flag| flag.value.as_bool() == Some(true))
        };
        if is_normalised("empirical_normalization") || is_normalised("actor_obs_normalization") {
            contract.assumed.push(
                "the normaliser (x - mean) / (std + 0.01) of the training is in the exported file"
                    .to_owned(),
            );
        }
    }
    Ok(contract)
}

fn read_action(
    root: &Node<'_>,
    names: &[String],
    default: &[f64],
    clip_actions: Option<f64>,
    contract: &mut Contract,
) -> Result<()> {
    let actions = root.need("actions")?;
    let terms: Vec<_> = actions
        .entries()
        .into_iter()
        .filter(|(_, node)| node.get("joint_names").is_some())
        .collect();
    let [(_, action)] = &terms[..] else {
        return Err(actions.error("one action of joints is needed"));
    };
    let patterns = action.need("joint_names")?.texts()?;
    let driven = joints::matching(action, &patterns, names)?;
    let class = action
        .get("class_type")
        .and_then(|class| class.value.as_str().map(str::to_owned))
        .unwrap_or_default();
    let kinds = [
        ("RelativeJointPosition", Control::Position),
        ("JointPosition", Control::Position),
        ("JointVelocity", Control::Velocity),
        ("JointEffort", Control::Torque),
    ];
    let (kind, control) = kinds
        .into_iter()
        .find(|(kind, _)| class.contains(kind))
        .ok_or_else(|| action.error(format_args!("class_type {class:?} is not supported")))?;
    let own: Vec<String> = driven.iter().map(|joint| names[*joint].clone()).collect();
    let numbers = |key: &str, absent: f64| -> Result<Vec<f64>> {
        let values = action.get(key).map_or(Ok(vec![None; own.len()]), |node| {
            joints::of_patterns(&node, &own)
        })?;
        Ok(values
            .into_iter()
            .map(|value| value.unwrap_or(absent))
            .collect())
    };
    let uses_default = action
        .get("use_default_offset")
        .is_none_or(|flag| flag.value.as_bool() == Some(true));
    let offset = if control == Control::Position && kind == "JointPosition" && uses_default {
        driven.iter().map(|joint| default[*joint]).collect()
    } else {
        numbers("offset", 0.0)?
    };
    contract.action = ActionRule {
        clip: clip_actions.map_or(Vec::new(), |clip| vec![[-clip, clip]]),
        scale: numbers("scale", 1.0)?,
        offset,
        add: if kind == "RelativeJointPosition" {
            own.iter()
                .map(|joint| format!("joint_pos.{joint}"))
                .collect()
        } else {
            Vec::new()
        },
        channels: Some(own),
        chunk: 1,
        ..ActionRule::default()
    };
    if let Some(clip) = action.get("clip") {
        let mut bounds = vec![[f64::NEG_INFINITY, f64::INFINITY]; driven.len()];
        for (pattern, pair) in clip.entries() {
            let pair = pair.bounds()?;
            let own = contract.action.channels.as_deref().unwrap_or_default();
            for place in joints::matching(&clip, &[pattern], own)? {
                bounds[place] = pair.first().copied().unwrap_or(bounds[place]);
            }
        }
        contract.action.clip_target = bounds;
    }
    contract.motors = Some(MotorRule {
        joints: contract.action.channels.clone(),
        control: vec![control],
        default: driven.iter().map(|joint| default[*joint]).collect(),
        ..MotorRule::default()
    });
    Ok(())
}

/// Gains and limits of the actuators' groups.
fn read_actuators(robot: &Node<'_>, contract: &mut Contract) -> Result<()> {
    let Some(motors) = &mut contract.motors else {
        return Ok(());
    };
    let own = motors.joints.clone().unwrap_or_default();
    let mut lists = [(); 4].map(|()| vec![None; own.len()]);
    let keys = [
        &["stiffness"][..],
        &["damping"],
        &["effort_limit_sim", "effort_limit"],
        &["velocity_limit_sim", "velocity_limit"],
    ];
    for (_, group) in robot.need("actuators")?.entries() {
        let patterns = group.need("joint_names_expr")?.texts()?;
        let places = joints::matching(&group, &patterns, &own)?;
        for (list, keys) in lists.iter_mut().zip(keys) {
            let Some(node) = keys.iter().find_map(|key| group.get(key)) else {
                continue;
            };
            let values = joints::of_patterns(&node, &own)?;
            for place in &places {
                list[*place] = values[*place].or(list[*place]);
            }
        }
    }
    let [stiffness, damping, torque, velocity] = lists;
    let whole = |list: Vec<Option<f64>>| list.into_iter().collect::<Option<Vec<f64>>>();
    let (Some(stiffness), Some(damping)) = (whole(stiffness), whole(damping)) else {
        contract
            .unread
            .push("stiffness and damping: some joints have none in the file".to_owned());
        return Ok(());
    };
    (motors.stiffness, motors.damping) = (stiffness, damping);
    motors.torque_limit = whole(torque).unwrap_or_default();
    motors.velocity_limit = Vec::new();
    if whole(velocity).is_some() {
        contract
            .unread
            .push("velocity_limit: a limit of the simulated motor".to_owned());
    }
    Ok(())
}

fn read_commands(root: &Node<'_>, contract: &mut Contract) -> Result<()> {
    let Some(commands) = root.get("commands") else {
        return Ok(());
    };
    for (name, command) in commands.entries() {
        let Some(ranges) = command.get("ranges") else {
            contract.unread.push(format!("command {name}"));
            continue;
        };
        for (part, unit) in [
            ("lin_vel_x", "m/s"),
            ("lin_vel_y", "m/s"),
            ("ang_vel_z", "rad/s"),
        ] {
            if let Some(range) = ranges.get(part) {
                contract.commands.push(CommandRule {
                    name: part.to_owned(),
                    value: 0.0,
                    unit: Some(unit.to_owned()),
                    range: range.bounds()?.first().copied().unwrap_or([-1.0, 1.0]),
                    schedule: Vec::new(),
                    is_linear: false,
                });
            }
        }
    }
    Ok(())
}

fn read_observations(
    root: &Node<'_>,
    names: &[String],
    default: &[f64],
    clip_actions: Option<f64>,
    contract: &mut Contract,
) -> Result<()> {
    let group = root.need("observations")?.need("policy")?;
    let number = |node: Option<Node<'_>>| node.map_or(Ok(0.0), |node| node.number());
    let whole = number(group.get("history_length"))?;
    for (name, node) in group.entries() {
        if GROUP_KEYS.contains(&name.as_str()) {
            continue;
        }
        let function = node.need("func")?;
        let path = function.value.as_str().unwrap_or_default();
        let function = path.rsplit([':', '.']).next().unwrap_or_default();
        let own = match node
            .get("params")
            .and_then(|params| params.get("asset_cfg")?.get("joint_names"))
        {
            Some(patterns) => match patterns.value.as_str() {
                Some(pattern) => joints::matching(&patterns, &[pattern.to_owned()], names)?,
                None => joints::matching(&patterns, &patterns.texts()?, names)?,
            },
            None => (0..names.len()).collect(),
        };
        let named: Vec<String> = own.iter().map(|joint| names[*joint].clone()).collect();
        let base = |channel: &str| Term::of_channels(vec![channel.to_owned()], &name);
        let mut term = match function {
            "base_ang_vel" => base("base_ang_vel.*"),
            "base_lin_vel" => base("base_lin_vel.*"),
            "projected_gravity" => Term {
                function: TermFunction::Gravity,
                quaternion: Some(QuaternionOrder::Wxyz),
                ..base("base_quat.*")
            },
            "generated_commands" => base("command.*"),
            "joint_pos" => joints::term("joint_pos", &named, &name),
            "joint_pos_rel" => Term {
                offset: own.iter().map(|joint| default[*joint]).collect(),
                ..joints::term("joint_pos", &named, &name)
            },
            "joint_vel" | "joint_vel_rel" => joints::term("joint_vel", &named, &name),
            "last_action" => Term {
                source: TermSource::PreviousAction(match clip_actions {
                    Some(_) => ActionStage::Clipped,
                    None => ActionStage::Raw,
                }),
                ..base("")
            },
            _ => {
                return Err(node.error(format_args!(
                    "func {path:?} is unknown; known: base_ang_vel, base_lin_vel, projected_gravity, generated_commands, joint_pos, joint_pos_rel, joint_vel, joint_vel_rel, last_action"
                )));
            }
        };
        term.clip = node
            .get("clip")
            .map_or(Ok(Vec::new()), |node| node.bounds())?;
        term.scale = node
            .get("scale")
            .map_or(Ok(Vec::new()), |node| node.numbers())?;
        term.apply = Some(TermStep::ORDER.to_vec());
        let length = if whole > 0.0 {
            whole
        } else {
            number(node.get("history_length"))?
        };
        if length > 1.0 {
            term.history = History::oldest_first(length as usize);
            term.fill = Some(Fill::First);
        }
        contract.observation.push(term);
    }
    Ok(())
}
