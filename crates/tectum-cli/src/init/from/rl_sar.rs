//! `base.yaml` and `config.yaml` of rl_sar: the values of a policy override those of its robot.

use tectum::Result;
use tectum_control::body::motors::rule::{Control, MotorRule};
use tectum_control::brain::policy::contract::Contract;
use tectum_control::brain::policy::contract::action::ActionRule;
use tectum_control::brain::policy::contract::command::CommandRule;
use tectum_control::brain::policy::contract::history::{Fill, History};
use tectum_control::brain::policy::contract::input::InputRule;
use tectum_control::brain::policy::contract::term::{
    ActionStage, QuaternionOrder, Term, TermFunction, TermSource, TermStep,
};

use super::yaml::Node;
use super::{Around, joints};

/// Whether one of the files has the settings of a policy under a key ROBOT/POLICY.
pub fn is_one(roots: &[Node<'_>]) -> bool {
    roots
        .iter()
        .flat_map(Node::entries)
        .any(|(key, node)| key.contains('/') && node.get("observations").is_some())
}

/// Settings of a policy, else of its robot.
struct Settings<'y> {
    tables: Vec<Node<'y>>,
}

impl<'y> Settings<'y> {
    fn of(roots: &[Node<'y>]) -> Self {
        let mut tables: Vec<(String, Node<'y>)> = roots.iter().flat_map(Node::entries).collect();
        // Those of a policy, ROBOT/POLICY, first.
        tables.sort_by_key(|(key, _)| !key.contains('/'));
        Self {
            tables: tables.into_iter().map(|(_, node)| node).collect(),
        }
    }

    fn get(&self, key: &str) -> Option<Node<'y>> {
        self.tables.iter().find_map(|table| table.get(key))
    }

    fn need(&self, key: &str) -> Result<Node<'y>> {
        self.get(key)
            .ok_or_else(|| self.tables[0].error(format_args!("no file has {key}")))
    }

    fn numbers(&self, key: &str) -> Result<Vec<f64>> {
        self.get(key).map_or(Ok(Vec::new()), |node| node.numbers())
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        self.get(key).map(|node| node.number()).transpose()
    }
}

/// The keys that make the contract.
const USED: [&str; 25] = [
    "dt",
    "decimation",
    "rl_kp",
    "rl_kd",
    "fixed_kp",
    "fixed_kd",
    "num_of_dofs",
    "wheel_indices",
    "torque_limits",
    "default_dof_pos",
    "joint_names",
    "joint_mapping",
    "num_observations",
    "observations",
    "observations_history",
    "observations_history_priority",
    "clip_obs",
    "clip_actions_lower",
    "clip_actions_upper",
    "action_scale",
    "lin_vel_scale",
    "ang_vel_scale",
    "dof_pos_scale",
    "dof_vel_scale",
    "commands_scale",
];

pub fn contract(roots: &[Node<'_>], around: Around<'_>) -> Result<Contract> {
    let settings = Settings::of(roots);
    let period_s = settings.need("dt")?.number()? * settings.need("decimation")?.number()?;
    let mut contract = Contract {
        period_s: Some(period_s),
        ..Contract::default()
    };
    let default = settings.numbers("default_dof_pos")?;
    let count = default.len();
    let names = joint_names(&settings, around, count, &mut contract.assumed)?;
    let wheels = match settings.get("wheel_indices") {
        Some(node) => node.indices()?,
        None => Vec::new(),
    };
    let is_wheel = |joint: usize| wheels.contains(&joint);
    let (low, high) = (
        settings.numbers("clip_actions_lower")?,
        settings.numbers("clip_actions_upper")?,
    );
    contract.action = ActionRule {
        channels: Some(names.clone()),
        clip: low
            .iter()
            .zip(&high)
            .map(|(low, high)| [*low, *high])
            .collect(),
        scale: settings.numbers("action_scale")?,
        // The target of a wheel is a velocity.
        offset: (0..count)
            .map(|joint| if is_wheel(joint) { 0.0 } else { default[joint] })
            .collect(),
        chunk: 1,
        ..ActionRule::default()
    };
    let gains = |key: &str, other: &str| -> Result<Vec<f64>> {
        let own = settings.numbers(key)?;
        if own.is_empty() {
            settings.numbers(other)
        } else {
            Ok(own)
        }
    };
    let control = (0..count).map(|joint| {
        if is_wheel(joint) {
            Control::Velocity
        } else {
            Control::Position
        }
    });
    contract.motors = Some(MotorRule {
        joints: Some(names.clone()),
        control: if wheels.is_empty() {
            Vec::new()
        } else {
            control.collect()
        },
        stiffness: gains("rl_kp", "fixed_kp")?,
        damping: gains("rl_kd", "fixed_kd")?,
        torque_limit: settings.numbers("torque_limits")?,
        default: default.clone(),
        ..MotorRule::default()
    });
    read_observations(&settings, &names, &default, &wheels, around, &mut contract)?;
    for (key, _) in settings.tables.iter().flat_map(Node::entries) {
        if !USED.contains(&key.as_str()) && !contract.unread.contains(&key) {
            contract.unread.push(key);
        }
    }
    Ok(contract)
}

fn joint_names(
    settings: &Settings<'_>,
    around: Around<'_>,
    count: usize,
    assumed: &mut Vec<String>,
) -> Result<Vec<String>> {
    if let Some(names) = settings.get("joint_names") {
        let names = names.texts()?;
        if names.len() == count {
            return Ok(names);
        }
    }
    // joint_mapping[i] is the motor of the policy's joint i.
    let map = match settings.get("joint_mapping") {
        Some(map) => map.indices()?,
        None => (0..count).collect(),
    };
    let motors = map.iter().max().map_or(0, |motor| motor + 1);
    let names = joints::names(around.body, motors, assumed);
    Ok(map.iter().map(|motor| names[*motor].clone()).collect())
}

fn read_observations(
    settings: &Settings<'_>,
    names: &[String],
    default: &[f64],
    wheels: &[usize],
    around: Around<'_>,
    contract: &mut Contract,
) -> Result<()> {
    let observations = settings.need("observations")?;
    for (name, node) in observations.texts()?.iter().zip(observations.items()?) {
        let base = |channel: &str| Term::of_channels(vec![channel.to_owned()], name);
        let scale = |key: &str| settings.numbers(key);
        let mut term = match name.as_str() {
            "lin_vel" => Term {
                scale: scale("lin_vel_scale")?,
                ..base("base_lin_vel.*")
            },
            "ang_vel" => Term {
                scale: scale("ang_vel_scale")?,
                ..base("base_ang_vel.*")
            },
            "gravity_vec" => Term {
                function: TermFunction::Gravity,
                quaternion: Some(QuaternionOrder::Wxyz),
                ..base("base_quat.*")
            },
            "commands" => {
                for command in ["x", "y", "yaw"] {
                    contract.commands.push(CommandRule {
                        name: command.to_owned(),
                        value: 0.0,
                        unit: None,
                        range: [f64::NEG_INFINITY, f64::INFINITY],
                        schedule: Vec::new(),
                        is_linear: false,
                    });
                }
                let channels = ["x", "y", "yaw"].map(|command| format!("command.{command}"));
                Term {
                    scale: scale("commands_scale")?,
                    ..Term::of_channels(channels.to_vec(), name)
                }
            }
            "dof_pos" => {
                let factors = scale("dof_pos_scale")?;
                let factor = factors.first().copied().unwrap_or(1.0);
                let scale = (0..names.len())
                    .map(|joint| if wheels.contains(&joint) { 0.0 } else { factor });
                Term {
                    offset: default.to_vec(),
                    scale: if wheels.is_empty() {
                        factors
                    } else {
                        scale.collect()
                    },
                    ..joints::term("joint_pos", names, name)
                }
            }
            "dof_vel" => Term {
                scale: scale("dof_vel_scale")?,
                ..joints::term("joint_vel", names, name)
            },
            "actions" => Term {
                // After the clip, before the scale.
                source: TermSource::PreviousAction(ActionStage::Clipped),
                ..base("")
            },
            _ => {
                return Err(node.error(format_args!(
                    "the observation {name:?} is unknown; known: lin_vel, ang_vel, gravity_vec, commands, dof_pos, dof_vel, actions"
                )));
            }
        };
        term.apply = Some(vec![
            TermStep::Function,
            TermStep::Offset,
            TermStep::Scale,
            TermStep::Clip,
        ]);
        contract.observation.push(term);
    }
    let name = around.ports.map_or("obs", |(input, _)| input);
    let mut rule = InputRule::of(name);
    if let Some(clip) = settings.number("clip_obs")? {
        rule.clip = vec![[-clip, clip]];
    }
    if let Some(history) = settings.get("observations_history") {
        let ages = history.indices()?;
        if ages.len() > 1 {
            // The buffer starts with zeros.
            rule.fill = Some(Fill::Zeros);
            let history = History {
                ages,
                is_order_stated: true,
            };
            let priority = settings.get("observations_history_priority");
            match priority.as_ref().and_then(|node| node.value.as_str()) {
                Some("term") => {
                    for term in &mut contract.observation {
                        term.history.clone_from(&history);
                    }
                }
                Some("time") => rule.frames = history,
                None => {
                    contract.assumed.push(
                        "the history is one of whole frames: no file has observations_history_priority"
                            .to_owned(),
                    );
                    rule.frames = history;
                }
                Some(other) => {
                    return Err(settings.tables[0].error(format_args!(
                        "observations_history_priority {other:?} is unknown; known: time, term"
                    )));
                }
            }
        }
    }
    contract.inputs.push(rule);
    Ok(())
}
