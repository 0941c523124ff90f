//! `tectum init`: a contract for a policy, to fill in.

mod from;

use std::path::{Path, PathBuf};

use clap::Args;
use tectum::{Error, Result, file};
use tectum_control::body::BodySpec;
use tectum_control::brain::policy::contract::{Contract, METADATA_KEY, state_by_name};
use tectum_control::brain::policy::metadata;
use tectum_control::scenario::build::named_body;
use tectum_onnx::{Model, Network, NetworkPort};

use crate::file_ending::FileEnding;
use crate::messages;
use crate::table::print;

/// Numbers of an input that are written one by one.
const MAX_LISTED: usize = 16;

/// Writes a commented contract for a policy, to fill in.
///
/// The contract states which channels of a body make up the policy's input, and what its output
/// does. It is read if it is next to the policy with the same name, or by --contract. What the
/// file's metadata state is written into it; the rest of them is listed.
///
/// --from reads the contract from the files of a framework: deploy.yaml of unitree_rl_lab,
/// base.yaml and config.yaml of rl_sar, env.yaml and agent.yaml of Isaac Lab, config.json of
/// LeRobot, and the ZIP and vecnormalize.pkl of Stable-Baselines3. No code of a pickle is executed.
#[derive(Args)]
pub struct InitArgs {
    /// The policy; --from alone needs none.
    #[arg(value_name = "POLICY.onnx", required_unless_present = "from")]
    policy: Option<PathBuf>,
    /// The body whose channels the contract names.
    #[arg(long, value_name = "NAME|FILE.plant")]
    body: Option<String>,
    /// A file of the framework that trained the policy; several files if it has several.
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// The file; next to the policy with the ending .toml if not given.
    #[arg(long, value_name = "FILE.toml", value_parser = FileEnding(&["toml"]))]
    out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A policy or a framework's file that cannot be read; an unknown body; a file that exists or
/// cannot be written.
pub fn init(args: &InitArgs) -> Result<()> {
    let spec = args
        .body
        .as_deref()
        .map(|name| named_body(name, None).map(|body| body.spec().clone()))
        .transpose()?;
    let base = args.policy.as_ref().or(args.from.first());
    let path = match (&args.out, base) {
        (Some(out), _) => out.clone(),
        (None, Some(base)) => base.with_extension("toml"),
        (None, None) => return Err(Error::invalid("init: a policy or --from is needed")),
    };
    let text = if args.from.is_empty() {
        let policy = args.policy.as_deref().unwrap_or(Path::new(""));
        of_policy(policy, spec.as_ref())?
    } else {
        of_framework(args, spec.as_ref())?
    };
    if !file::write_new(&path, text.as_bytes())? {
        return Err(Error::invalid(format!(
            "init: {} exists; name another file by --out",
            path.display()
        )));
    }
    print(&format!("{}\n", path.display()))
}

/// The contract that a framework's files state.
fn of_framework(args: &InitArgs, body: Option<&BodySpec>) -> Result<String> {
    let model = args.policy.as_deref().map(Model::open).transpose()?;
    let ports = model.as_ref().and_then(|model| {
        let (input, output) = (model.inputs().first()?, model.outputs().first()?);
        (model.inputs().len() == 1).then_some((input.name.as_str(), output.name.as_str()))
    });
    let contract = from::contract(&args.from, from::Around { body, ports })?;
    Ok(format!(
        "# Contract from {}: what the policy's numbers mean.\n\n{}",
        contract.origin,
        contract.to_toml(body)
    ))
}

/// A contract to fill in, with what the metadata of a policy state.
fn of_policy(path: &Path, body: Option<&BodySpec>) -> Result<String> {
    let policy = path.display().to_string();
    let model = Model::open(path)?;
    let (network, others) = model
        .load_supported(&[])
        .map_err(|error| error.at(&policy))?;
    for (output, error) in others {
        messages::warning(format!("output {output} cannot be the action: {error}"));
    }
    let metadata = model.metadata();
    if let Some(own) = metadata.get(METADATA_KEY) {
        return Ok(format!(
            "# The contract in the metadata of {policy}.\n{own}\n"
        ));
    }
    let origin = format!("metadata of {policy}");
    let known = metadata::is_known(&metadata)
        .then(|| metadata::contract(&metadata, &origin, body))
        .transpose()?;
    let draft = Draft {
        policy: &policy,
        network: &network,
        body,
        known: known.as_ref(),
        unused: &metadata::unused(&metadata),
    };
    Ok(draft.text())
}

/// A text of TOML. JSON's form of a text is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// A text of metadata on one line, shortened.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > 100 {
        format!("{} …", line.chars().take(100).collect::<String>())
    } else {
        line
    }
}

/// What a contract is written from.
struct Draft<'a> {
    policy: &'a str,
    network: &'a Network,
    body: Option<&'a BodySpec>,
    /// The contract that the metadata of the file make.
    known: Option<&'a Contract>,
    /// Metadata that make no part of it.
    unused: &'a [(&'a str, &'a str)],
}

impl Draft<'_> {
    fn text(&self) -> String {
        if let Some(known) = self.known {
            return self.comments() + &known.to_toml(self.body);
        }
        let states = state_by_name(self.network, &[]);
        let mut inputs = self
            .network
            .inputs()
            .iter()
            .filter(|input| states.iter().all(|(state, _)| *state != input.name));
        let output = self
            .network
            .outputs()
            .find(|output| states.iter().all(|(_, state)| *state != output.name));
        let input = inputs.next();
        let mut text = self.head(input, output);
        text += &self.observation();
        for other in inputs {
            text += &other_input(other);
        }
        text += &self.action();
        if !states.is_empty() {
            text += "\n# Inputs that are outputs of the tick before; zeros at the start of an episode.\n[state]\n";
            for (input, output) in &states {
                text += &format!("{} = {}\n", quoted(input), quoted(output));
            }
        }
        text
    }

    fn comments(&self) -> String {
        let mut text = format!(
            "# Contract of {}: what its numbers mean. Fill in and delete what does not apply.\n",
            self.policy
        );
        if self.known.is_some() {
            text += "# Read from the file's metadata.\n";
        }
        if !self.unused.is_empty() {
            text += "# The file's metadata that this contract does not use:\n";
            for (key, value) in self.unused {
                text += &format!("#   {key}: {}\n", short(value));
            }
        }
        text + "\n"
    }

    fn head(&self, input: Option<&NetworkPort>, output: Option<&NetworkPort>) -> String {
        let size =
            |port: Option<&NetworkPort>| port.map_or(0, |port| port.dims.iter().product::<usize>());
        let name = |port: Option<&NetworkPort>| quoted(port.map_or("", |port| &port.name));
        let mut text = self.comments();
        let period = self.body.map_or_else(
            || "# period = 0.02".to_owned(),
            |body| format!("period = {}", body.dt_s),
        );
        text +=
            &format!("# Time between two answers, in seconds; it must be the body's.\n{period}\n");
        text += &format!(
            "# The input that the terms below fill ({} numbers), and the output that is the action ({}).\n",
            size(input),
            size(output)
        );
        text + &format!("input = {}\noutput = {}\n\n", name(input), name(output))
    }

    fn observation(&self) -> String {
        let mut text = "# The parts of the input in their order. Each number is\n#   min(max(function(number in `unit`) - offset, clip[0]), clip[1]) * scale\n".to_owned();
        text += "# `offset` and `scale` are one number for all, or a list. `history` counts the last values, the oldest first.\n";
        if let Some(body) = self.body {
            text += &format!("# The body {} has:\n", body.name);
            for channel in &body.observation {
                text += &format!(
                    "#   {} [{}], {} to {}\n",
                    channel.name, channel.unit, channel.low, channel.high
                );
            }
        }
        text += &match self.body {
            Some(body) => {
                let names = list(body.observation.iter().map(|channel| channel.name.as_str()));
                format!("[[observation]]\nchannels = [{names}]\n")
            }
            None => "[[observation]]\nchannels = [\"NAME\", \"NAME\"]\n".to_owned(),
        };
        text += "# unit = \"rad\"\n# function = \"sin\"              # of an angle, in any unit\n# offset = 0.0\n# clip = [-5.0, 5.0]\n# scale = 1.0\n# history = 1\n\n";
        text + "# [[observation]]\n# source = \"previous action\"   # the network's last output\n\n# [[observation]]\n# value = [0.5, 0.0, 0.0]      # a command\n\n"
    }

    fn action(&self) -> String {
        let mut text = "# The action of a channel is min(max(number, clip[0]), clip[1]) * scale + offset, in `unit`.\n[action]\n".to_owned();
        for channel in self.body.iter().flat_map(|body| &body.action) {
            text += &format!(
                "#   {} [{}], {} to {}{}\n",
                channel.name,
                channel.unit,
                channel.low,
                channel.high,
                if channel.discrete {
                    ", only these two"
                } else {
                    ""
                }
            );
        }
        if let Some(body) = self.body {
            let names = list(body.action.iter().map(|channel| channel.name.as_str()));
            text += &format!("channels = [{names}]\n");
        } else {
            text += "channels = [\"NAME\"]\n";
        }
        text += "# passive = [\"NAME\"]           # channels of the body that the policy does not drive\n";
        text += "# unit = \"rad\"\n# clip = [-1.0, 1.0]\n";
        text += "# scale = 1.0\n# offset = 0.0                  # default positions, one for each channel\n";
        text += "# choices = [[-10.0], [10.0]]   # the action for each number of the output, of which the greatest counts\n";
        text += "# chunk = 8                     # rows of the output that are used, one for each tick\n";
        text + "# asynchronous = true           # inferences run concurrently with the loop\n"
    }
}

/// A term for another input of the network, filled with zeros.
fn other_input(port: &NetworkPort) -> String {
    let len = port.dims.iter().product::<usize>();
    let shape = format!("{} {:?} {}", port.name, port.dims, port.element);
    let name = quoted(&port.name);
    if len > MAX_LISTED {
        return format!(
            "# Another input, {shape}.\n# [[observation]]\n# input = {name}\n# channels = [\"NAME\"]\n\n"
        );
    }
    let zeros = vec!["0"; len].join(", ");
    format!("# Another input, {shape}.\n[[observation]]\ninput = {name}\nvalue = [{zeros}]\n\n")
}
