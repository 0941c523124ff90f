//! `tectum init`: a contract for a policy, to fill in.

use std::path::PathBuf;

use clap::Args;
use tectum::{Error, Result, file};
use tectum_control::body::{BodySpec, body};
use tectum_control::brain::policy::contract::state_by_name;
use tectum_onnx::{Model, Network, NetworkPort};

use crate::file_ending::FileEnding;
use crate::table::print;

/// Writes a commented contract for a policy, to fill in.
///
/// The contract states which channels of a body make up the policy's input, and what its output
/// does. It is read if it is next to the policy with the same name, or by --contract.
#[derive(Args)]
pub struct InitArgs {
    /// The policy.
    #[arg(value_name = "POLICY.onnx")]
    policy: PathBuf,
    /// The body whose channels the contract names.
    #[arg(long, value_name = "NAME|FILE.plant")]
    body: Option<String>,
    /// The file; next to the policy with the ending .toml if not given.
    #[arg(long, value_name = "FILE.toml", value_parser = FileEnding(&["toml"]))]
    out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A policy that cannot be read; an unknown body; a file that exists or cannot be written.
pub fn init(args: &InitArgs) -> Result<()> {
    let model = Model::open(&args.policy)?;
    let network = model
        .load(&[])
        .map_err(|error| error.at(args.policy.display()))?;
    let spec = args
        .body
        .as_deref()
        .map(|name| body(name, None).map(|body| body.spec().clone()))
        .transpose()?;
    let path = args
        .out
        .clone()
        .unwrap_or_else(|| args.policy.with_extension("toml"));
    let text = contract(&args.policy.display().to_string(), &network, spec.as_ref());
    if !file::write_new(&path, text.as_bytes())? {
        return Err(Error::invalid(format!(
            "init: {} exists; name another file by --out",
            path.display()
        )));
    }
    print(&format!("{}\n", path.display()))
}

fn list(names: impl IntoIterator<Item = String>) -> String {
    names
        .into_iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn contract(policy: &str, network: &Network, body: Option<&BodySpec>) -> String {
    let (inputs, outputs): (Vec<&NetworkPort>, Vec<&NetworkPort>) = (
        network.inputs().iter().collect(),
        network.outputs().collect(),
    );
    let states = state_by_name(network);
    let input = inputs
        .iter()
        .find(|input| states.iter().all(|(state, _)| *state != input.name));
    let output = outputs
        .iter()
        .find(|output| states.iter().all(|(_, state)| *state != output.name));
    let size =
        |port: Option<&&NetworkPort>| port.map_or(0, |port| port.dims.iter().product::<usize>());
    let name =
        |port: Option<&&NetworkPort>| port.map_or_else(String::new, |port| port.name.clone());
    let mut text = format!(
        "# Contract of {policy}: what its numbers mean. Fill in and delete what does not apply.\n\n"
    );
    let period = body.map_or_else(
        || "# period = 0.02".to_owned(),
        |body| format!("period = {}", body.dt_s),
    );
    text += &format!("# Time between two answers, in seconds; it must be the body's.\n{period}\n");
    text += &format!(
        "# The input that the terms below fill ({} numbers), and the output that is the action ({}).\n",
        size(input),
        size(output)
    );
    text += &format!("input = {:?}\noutput = {:?}\n\n", name(input), name(output));
    text += "# The parts of the input in their order. Each number is\n#   min(max(function(number in `unit`) - offset, clip[0]), clip[1]) * scale\n";
    text += "# `offset` and `scale` are one number for all, or a list. `history` counts the last values, the oldest first.\n";
    match body {
        Some(body) => {
            text += &format!("# The body {} has:\n", body.name);
            for channel in &body.observation {
                text += &format!(
                    "#   {} [{}], {} to {}\n",
                    channel.name, channel.unit, channel.low, channel.high
                );
            }
            let names = list(body.observation.iter().map(|channel| channel.name.clone()));
            text += &format!("[[observation]]\nchannels = [{names}]\n");
        }
        None => text += "[[observation]]\nchannels = [\"NAME\", \"NAME\"]\n",
    }
    text += "# unit = \"rad\"\n# function = \"sin\"\n# offset = 0.0\n# clip = [-5.0, 5.0]\n# scale = 1.0\n# history = 1\n\n";
    text += "# [[observation]]\n# source = \"previous action\"   # the network's last output\n\n# [[observation]]\n# value = [0.5, 0.0, 0.0]      # a command\n\n";
    text += "# The action of a channel is min(max(number, clip[0]), clip[1]) * scale + offset, in `unit`.\n[action]\n";
    match body {
        Some(body) => {
            for channel in &body.action {
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
            text += &format!(
                "channels = [{}]\n",
                list(body.action.iter().map(|channel| channel.name.clone()))
            );
        }
        None => text += "channels = [\"NAME\"]\n",
    }
    text += "# unit = \"rad\"\n# clip = [-1.0, 1.0]\n# scale = 1.0\n# offset = 0.0                  # default positions, one for each channel\n";
    text += "# choices = [[-10.0], [10.0]]   # the action for each number of the output, of which the greatest counts\n";
    text +=
        "# chunk = 8                     # rows of the output that are used, one for each tick\n";
    text += "# asynchronous = true           # inferences run concurrently with the loop\n";
    if !states.is_empty() {
        text += "\n# Inputs that are outputs of the tick before; zeros at the start of an episode.\n[state]\n";
        states
            .iter()
            .for_each(|(input, output)| text += &format!("{input} = {output:?}\n"));
    }
    text
}
