//! The reference of scenarios, `docs/scenarios.md`: what the readers ask for when they read
//! examples of each table.

use std::cell::RefCell;
use std::fmt::Write as _;

use tectum::Result;
use toml::Table;

use crate::body::{BODIES, Descriptor, Family, Start, mujoco};
use crate::brain::BRAIN_DESCRIPTIONS;
use crate::brain::custom::described;
use crate::brain::mppi::MppiParameters;
use crate::document::{Key, KeyRow, Section, TomlSource, renamings};
use crate::recording::topic_rows;
use crate::run_folder::FILES;
use crate::scenario::Scenario;

/// The part that is written by hand, before the tables.
const HEAD: &str = include_str!("reference.md");

const BODY: &str = r#"[body]
name = "rig"
start = "hanging"

[body.disturbances]
pole_length = 0.8
delay_samples = 1
noise = 1
outlier_fraction = 0.02

[body.parameters]
pole_length_m = 0.17
pole_damping_per_s = 0.31
gravity = 9.81
travel_in = 4.0
command_period_s = 0.04
servo_gain = -4.5
servo_dead_band_v = 0.1
servo_limit = 12.1
servo_lag_s = 0.0075
delay_s = 0.027
command_limit_v = 5.0
"#;

const SEEKER: &str = r#"[body]
name = "seeker"

[body.parameters]
action_period_s = 0.1
side_m = 4.0
max_speed = 0.5
max_turn = 2.0
radius_m = 0.1
obstacle_radius_m = 0.25
whisker_m = 0.6
found_m = 0.3
"#;

const MUJOCO: &str = r#"[body]
name = "mujoco:hopper.xml"
period = 0.008
keyframe = "stand"
channels = ["joint_pos.*", "joint_vel.*"]
base = "torso"
camera = "track"
time_limit = 1000
python = ".venv/bin/python3"
wait = 60.0

[body.cameras]
track = [64, 64]

[body.noise]
position = 0.005
velocity = 0.005
velocity_distribution = "uniform"

[body.terminate]
height = [0.7, inf]
tilt = 0.2
"joint_vel.*" = [-100, 100]

[body.reward]
alive = 1.0
progress = "joint_pos.rootx"
progress_weight = 1.0
control = 0.001

[body.push]
body = "torso"
force = [100, 0, 0]
seconds = 0.1
"#;

const LOOP: &str = r#"[loop]
seconds = 60
seed = 1
clock = "real"
snapshot_every = 250
overrun = "hold"
stall_periods = 10
stand_in = "lqr"
priority = 40
lock_memory = true

[loop.guard.pend_position]
outlier_threshold = 60
stop_beyond = 170
"#;

const MPPI: &str = r#"[brain]
name = "mppi"
model = "twin"
samples = 256
horizon = 16
hold = 2
iterations = 1
sigma = 3.0
sigma_min = 0.15
temperature = 0.1
rate_weight = 0.02
energy_weight = 1.0
terminal_multiplier = 1.0

[brain.cost]
pend_position = 1.0
cmd_volts = 0.01

[brain.twin]
hidden = [64, 64]
transitions = 30000
steps = 3000
batch = 256
learning_rate = 0.008
weight_decay = 0.0001

[brain.twin.online]
warm_up = 0
every = 25
replay_capacity = 10000
steps = 500
"#;

/// Keys that exclude those of the example before.
const MPPI_FROM_FILE: &str = r#"[brain]
name = "mppi"

[brain.twin]
file = "twin.safetensors"
"#;

const MPPI_FROM_DATA: &str = r#"[brain]
name = "mppi"

[brain.twin]
data = "rig.csv"
"#;

const FIELD: &str = r#"[brain]
name = "field"
cells = [16, 16, 16]
channels = 64
boundary = "closed"
patterns = 256
storage = "f32"
extra_devices = ["vulkan:0"]
reward = "la_velocity"

[brain.coefficients]
retention = 0.99
coupling = 0.01
noise = 0.002
wave = 0.01
error_drive = 0.1
imprint = 0.5
dynamics_rate = 0.01
exploration = 0.1
recall = 0.1
familiar = 0.9
attraction = 0.01
strategy = 0.1
"#;

const POLICY: &str = r#"[brain]
name = "policy"
model = "walker.onnx"
contract = "policy.toml"
weights = "f32"
"#;

const GENOME: &str = r#"[brain]
genome = "genome.json"
units = "detect"
weight_loss = "detect"
idle_update = "catch_up"
weights = "learn"
bursts_per_tick = 4

[[brain.sensors]]
channel = "pend_position"
area = "eye"
x = 0
y = 0
coding = "linear"
amount = 1.5

[[brain.motors]]
channel = "cmd_volts"
area = "arm"
x = 0
y = 0
coding = "fractional"
rest = 0.0
"#;

/// Brains that have keys, with examples that give all of them.
const BRAINS: [(&str, &[&str]); 4] = [
    ("mppi", &[MPPI, MPPI_FROM_FILE, MPPI_FROM_DATA]),
    ("field", &[FIELD]),
    ("genome", &[GENOME]),
    ("policy", &[POLICY]),
];

/// The reference of scenarios as a page of Markdown: every key of every table with its values,
/// unit, default and meaning.
///
/// Names and ranges are those that the readers check, so the page cannot differ from them.
///
/// # Errors
/// `Unsupported` in a build without one of the features `field` and `spiking`.
pub fn scenario_reference() -> Result<String> {
    let mut page = HEAD.to_owned();
    let whole = asked(&format!("{BODY}\n[brain]\nname = \"zero\"\n\n{LOOP}"))?;
    page += "\n## The file\n\n```toml\nname = \"trial\"\n```\n";
    write_tables(&mut page, &whole, |table| table.is_empty());
    write!(page, "\nThe other keys are in the three tables `[body]`, `[brain]` and `[loop]`.\n\n## The body\n\n```toml\n{BODY}```\n").ok();
    write_tables(&mut page, &whole, |table| is_part(table, "body"));
    write!(
        page,
        "\nThe seeker has other parameters:\n\n```toml\n{SEEKER}```\n"
    )
    .ok();
    write_tables(
        &mut page,
        &asked(&format!("{SEEKER}\n[brain]\nname = \"zero\"\n"))?,
        |table| table == "body.parameters",
    );
    page += "\nAn equation file has those that it declares, and `[body.actual]` with the same keys: parameters that the plant has and its controllers do not know.\n";
    write!(
        page,
        "\nA MuJoCo model has keys of its own; [policies.md](policies.md#mujoco) explains them:\n\n```toml\n{MUJOCO}```\n"
    )
    .ok();
    let of_mujoco = asked_by(MUJOCO, "A MuJoCo model.", mujoco::read_keys)?;
    write_tables(&mut page, &of_mujoco, |table| is_part(table, "body"));
    for family in Family::all() {
        if !family.example.is_empty() {
            let (heading, example) = (family.heading, family.example);
            write!(page, "\n{heading}\n\n```toml\n{example}```\n").ok();
            let rows = asked_by(example, "A body that is not built in.", family.read_keys)?;
            write_tables(&mut page, &rows, |table| is_part(table, "body"));
        }
    }
    write_bodies(&mut page);
    page += "\n## The brain\n\n`[brain]` has the key `name`, and the keys of that brain. `tectum run --brain NAME` selects another with default settings.\n";
    write_tables(&mut page, &whole, |table| table == "brain");
    page += "\n| Brain | What it is | Keys |\n|---|---|---|\n";
    let added = described();
    let others = added.iter().map(|(name, [about, _])| (*name, *about));
    let examples = added
        .iter()
        .map(|(name, [_, example])| (*name, std::slice::from_ref(example)));
    let examples: Vec<(&str, &[&str])> = BRAINS.into_iter().chain(examples).collect();
    for (name, about) in BRAIN_DESCRIPTIONS.iter().copied().chain(others) {
        let about = about.trim_end_matches('.');
        let keys = match examples.iter().any(|(known, _)| *known == name) {
            true => format!("[below](#{name})"),
            false => "none".to_owned(),
        };
        writeln!(page, "| `{name}` | {about} | {keys} |").ok();
    }
    for (name, examples) in examples {
        let mut rows = Vec::new();
        writeln!(page, "\n### {name}").ok();
        for example in examples {
            write!(page, "\n```toml\n{example}```\n").ok();
            add_new(
                &mut rows,
                asked(&format!("[body]\nname = \"rig\"\n{example}"))?,
            );
        }
        rows.retain(|row| (row.table.as_str(), row.key.as_str()) != ("brain", "name"));
        write_tables(&mut page, &rows, |table| is_part(table, "brain"));
        if name == "mppi" {
            write_mppi_defaults(&mut page)?;
        }
    }
    write!(page, "\n## The loop\n\n```toml\n{LOOP}```\n").ok();
    write_tables(&mut page, &whole, |table| is_part(table, "loop"));
    page += "\n## Old names\n\nThese names are read with a warning, until the next version.\n\n| What | Old name | Name |\n|---|---|---|\n";
    for (what, old, new) in renamings() {
        writeln!(page, "| {what} | `{old}` | `{new}` |").ok();
    }
    page += "\n## Files of a run folder\n\n`tectum run SCENARIO` writes `runs/N/`. While it runs, the folder is called `runs/N.partial`.\n\n| File | Holds |\n|---|---|\n";
    for (file, holds) in FILES {
        writeln!(page, "| `{file}` | {holds} |").ok();
    }
    page += "\n## Topics of the recording\n\n`trace.mcap` has a message for each period on each of three topics, as JSON.\n\n| Topic | Field | Meaning |\n|---|---|---|\n";
    for [topic, field, meaning] in topic_rows() {
        writeln!(page, "| `{topic}` | {field} | {meaning} |").ok();
    }
    Ok(page)
}

/// The keys that are asked for when a text is read, each once.
fn asked(text: &str) -> Result<Vec<KeyRow>> {
    let rows = RefCell::new(Vec::new());
    Scenario::parse_as(text, "reference", "reference", false, Some(&rows))?;
    let mut once = Vec::new();
    add_new(&mut once, rows.into_inner());
    Ok(once)
}

/// The keys of a body that is not made.
fn asked_by(
    text: &str,
    about: &str,
    read_keys: fn(&mut Section<'_, '_>) -> Result<Table>,
) -> Result<Vec<KeyRow>> {
    let (rows, warnings) = (RefCell::default(), RefCell::default());
    let source = TomlSource {
        origin: "reference",
        text,
        is_record: false,
        warnings: &warnings,
        asked: Some(&rows),
    };
    let document = source.parse()?;
    let mut root = Section::root(source, document.get_ref());
    let mut body = root.section(Key::new("body", about))?;
    read_keys(&mut body)?;
    let mut once = Vec::new();
    add_new(&mut once, rows.into_inner());
    Ok(once)
}

fn add_new(rows: &mut Vec<KeyRow>, more: Vec<KeyRow>) {
    for row in more {
        if !rows
            .iter()
            .any(|known| (&known.table, &known.key) == (&row.table, &row.key))
        {
            rows.push(row);
        }
    }
}

/// Whether a table is another, or in it; `[a.b]` is a list of tables.
fn is_part(table: &str, of: &str) -> bool {
    let table = table.trim_matches(['[', ']']);
    table == of
        || table
            .strip_prefix(of)
            .is_some_and(|rest| rest.starts_with('.'))
}

/// Writes those of the tables that are chosen, in the order of their first keys. A row that
/// introduces a table has its meaning.
fn write_tables(page: &mut String, rows: &[KeyRow], is_chosen: impl Fn(&str) -> bool) {
    let mut tables: Vec<&str> = Vec::new();
    for row in rows
        .iter()
        .filter(|row| is_chosen(&row.table) && !row.is_table)
    {
        if !tables.contains(&row.table.as_str()) {
            tables.push(&row.table);
        }
    }
    for table in tables {
        let (parent, key) = table
            .trim_matches(['[', ']'])
            .rsplit_once('.')
            .unwrap_or(("", table));
        if let Some(about) = rows
            .iter()
            .find(|row| row.is_table && row.table == parent && row.key == key)
        {
            write!(page, "\n`[{table}]` {}\n", about.about).ok();
        } else if !table.is_empty() {
            write!(page, "\n`[{table}]`\n").ok();
        }
        page.push_str("\n| Key | Values | Unit | Default | Meaning |\n|---|---|---|---|---|\n");
        for row in rows
            .iter()
            .filter(|row| row.table == table && !row.is_table)
        {
            let default = if row.default.is_empty() {
                "none"
            } else {
                &row.default
            };
            writeln!(
                page,
                "| `{}` | {} | {} | {default} | {} |",
                row.key, row.values, row.unit, row.about
            )
            .ok();
        }
    }
}

/// Writes the table of the bodies.
fn write_bodies(page: &mut String) {
    page.push_str("\n| Body | Starts, the default first | Period | Observation | Action | Settings for | Disturbances |\n|---|---|---|---|---|---|---|\n");
    for body in BODIES {
        let Ok(made) = (body.make)(body.starts[0]) else {
            continue;
        };
        let spec = made.spec();
        let starts: Vec<&str> = body
            .starts
            .iter()
            .map(|start| {
                if *start == Start::Random {
                    "random"
                } else {
                    "hanging"
                }
            })
            .collect();
        let with_unit = |name: &str, unit: &str| {
            if unit.is_empty() {
                format!("`{name}`")
            } else {
                format!("`{name}` ({unit})")
            }
        };
        let observation: Vec<String> = spec
            .observation
            .iter()
            .map(|channel| with_unit(&channel.name, &channel.unit))
            .collect();
        let action: Vec<String> = spec
            .action
            .iter()
            .map(|channel| with_unit(&channel.name, &channel.unit))
            .collect();
        let brains = [
            ("mppi", body.mppi.is_some()),
            ("mppi over the plant", body.plant.is_some()),
            ("lqr and mpc", body.regulator.is_some()),
        ];
        let brains: Vec<&str> = brains
            .into_iter()
            .filter_map(|(name, has)| has.then_some(name))
            .collect();
        let brains = if brains.is_empty() {
            "no controller".to_owned()
        } else {
            brains.join(", ")
        };
        let disturbed = if body.disturbed.is_some() {
            "yes"
        } else {
            "no"
        };
        let lists = [
            starts.join(", "),
            format!("{} s", spec.dt_s),
            observation.join(", "),
            action.join(", "),
            brains,
        ];
        writeln!(
            page,
            "| `{}` | {} | {disturbed} |",
            body.name,
            lists.join(" | ")
        )
        .ok();
    }
}

/// Writes the settings of MPPI that are the body's.
fn write_mppi_defaults(page: &mut String) -> Result<()> {
    let bodies = || BODIES.into_iter().filter(|body| body.mppi.is_some());
    let mut columns = bodies()
        .map(|body| {
            Ok((
                format!("`{}`", body.name),
                body,
                MppiParameters::for_body(body.name)?,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    for body in bodies().filter(|body| body.plant.is_some()) {
        columns.push((
            format!("`{}`, model \"plant\"", body.name),
            body,
            MppiParameters::for_plant(body.name)?,
        ));
    }
    page.push_str("\nThe defaults that are the body's:\n\n| Key |");
    for (name, ..) in &columns {
        write!(page, " {name} |").ok();
    }
    writeln!(page, "\n|---|{}", "---:|".repeat(columns.len())).ok();
    type Cell = fn(&Descriptor, &MppiParameters) -> String;
    let rows: [(&str, Cell); 11] = [
        ("samples", |_, p| p.samples.to_string()),
        ("horizon", |_, p| p.horizon.to_string()),
        ("hold", |_, p| p.hold.to_string()),
        ("iterations", |_, p| p.iterations.to_string()),
        ("sigma", |_, p| p.sigma.to_string()),
        ("sigma_min", |_, p| {
            p.sigma_min
                .map_or_else(|| "sigma".to_owned(), |sigma| sigma.to_string())
        }),
        ("temperature", |_, p| p.temperature.to_string()),
        ("rate_weight", |_, p| p.rate_weight.to_string()),
        ("energy_weight", |_, p| p.energy_weight.to_string()),
        ("terminal_multiplier", |_, p| {
            p.terminal_multiplier.to_string()
        }),
        ("cost", costs),
    ];
    for (key, text) in rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, body, parameters)| text(body, parameters))
            .collect();
        writeln!(page, "| `{key}` | {} |", cells.join(" | ")).ok();
    }
    Ok(())
}

/// The weights of the running cost by channel; none where the body's own reward is the cost.
fn costs(body: &Descriptor, parameters: &MppiParameters) -> String {
    let Ok(made) = (body.make)(body.starts[0]) else {
        return String::new();
    };
    if parameters.feedback.is_some() {
        return "the body's reward".to_owned();
    }
    let observation = made
        .spec()
        .observation
        .iter()
        .zip(&parameters.channels)
        .map(|(channel, cost)| (&channel.name, cost.weight));
    let weights = observation.chain(
        made.spec()
            .action
            .iter()
            .map(|channel| (&channel.name, parameters.action_weight)),
    );
    let weights: Vec<String> = weights
        .filter(|(_, weight)| *weight != 0.0)
        .map(|(name, weight)| format!("`{name}` {weight}"))
        .collect();
    weights.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brain::BrainSpec;
    use crate::scenario::embedded;

    /// All examples, each as a whole scenario.
    fn examples() -> Vec<String> {
        let of_brains = BRAINS
            .iter()
            .flat_map(|(_, texts)| *texts)
            .map(|text| format!("[body]\nname = \"rig\"\n{text}"));
        let seeker = format!("{SEEKER}[brain]\nname = \"zero\"\n");
        of_brains
            .chain([
                format!("name = \"trial\"\n{BODY}[brain]\nname = \"zero\"\n{LOOP}"),
                seeker,
            ])
            .collect()
    }

    /// The lines of a text without a key, and without the tables inside its table, except lists of
    /// them, which may be required; the second has the key with a value instead.
    fn without_and_with(text: &str, row: &KeyRow, value: &str) -> [String; 2] {
        let header = if row.table.is_empty() {
            String::new()
        } else {
            format!("[{}]", row.table.replace("CHANNEL", "pend_position"))
        };
        let mut found = [String::new(), String::new()];
        let mut add = |line: &str, only_second: bool| {
            found[usize::from(only_second)..]
                .iter_mut()
                .for_each(|text| *text += &format!("{line}\n"))
        };
        let mut table = "";
        let given = format!("{} = {value}", row.key);
        if header.is_empty() {
            add(&given, true);
        }
        for line in text.lines() {
            table = if line.starts_with('[') { line } else { table };
            let is_inside = !header.is_empty()
                && table != header
                && !table.starts_with("[[")
                && is_part(
                    table.trim_matches(['[', ']']),
                    header.trim_matches(['[', ']']),
                );
            let is_key = table == header && line.split(" = ").next() == Some(row.key.as_str());
            if !is_inside && !is_key {
                add(line, false);
                if line == header && !header.is_empty() {
                    add(&given, true);
                }
            }
        }
        found
    }

    /// What a scenario comes to, with all its defaults.
    fn effective(text: &str) -> String {
        let mut scenario = Scenario::parse(text, "effective", "effective")
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (body, clock) = (scenario.body.model().expect("built in"), scenario.run.clock);
        let brain = match &mut scenario.brain {
            BrainSpec::Mppi(spec) => format!(
                "{:?} {:?} {:?} {:?}",
                spec.model_for(body.spec()),
                spec.parameters(&scenario.body, body.spec()),
                spec.twin.recipe(),
                spec.twin.online(clock)
            ),
            BrainSpec::Field(spec) => {
                let coefficients = std::mem::take(&mut spec.coefficients).to_coefficients();
                format!("{spec:?} {coefficients:?}")
            }
            other => format!("{other:?}"),
        };
        format!(
            "{:?} {:?} {:?} {brain}",
            scenario.name, scenario.body, scenario.run
        )
    }

    #[test]
    fn a_documented_default_is_what_applies_without_the_key() {
        let mut compared = 0;
        for text in examples() {
            for row in asked(&text)
                .expect("correct")
                .iter()
                .filter(|row| !row.is_table && row.key != "CHANNEL")
            {
                let header = format!("[{}]", row.table.replace("CHANNEL", "pend_position"));
                // An example may exclude keys of another.
                let has_key = text
                    .lines()
                    .any(|line| line.split(" = ").next() == Some(row.key.as_str()));
                let is_here =
                    has_key && (row.table.is_empty() || text.lines().any(|line| line == header));
                if is_here
                    && format!("key = {}", row.default)
                        .parse::<toml::Table>()
                        .is_ok()
                {
                    let [without, with] = without_and_with(&text, row, &row.default);
                    assert_ne!(without, with, "{row:?}");
                    assert_eq!(effective(&without), effective(&with), "{row:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 45, "{compared}");
    }

    #[test]
    fn every_key_has_a_meaning_and_an_example() {
        let examples = examples();
        let mut shown = Vec::new();
        for text in &examples {
            add_new(&mut shown, asked(text).expect("correct"));
        }
        for (_, text) in embedded() {
            add_new(&mut shown, asked(text).expect("correct"));
        }
        for row in shown {
            let key = if row.key == "CHANNEL" {
                "pend_position"
            } else {
                row.key.as_str()
            };
            let has_key = |line: &str| {
                line.split(" = ").next() == Some(key)
                    || (line.starts_with('[') && line.contains(key))
            };
            assert!(
                !row.about.is_empty() && examples.iter().any(|text| text.lines().any(has_key)),
                "{row:?}"
            );
        }
    }

    #[test]
    fn keys_of_the_scenarios_of_the_build_are_on_the_page() {
        let page = scenario_reference().expect("the examples are correct");
        for (name, text) in embedded() {
            for row in asked(text).expect("correct") {
                assert!(
                    row.is_table || page.contains(&format!("| `{}` | {} |", row.key, row.values)),
                    "{name}: {row:?}"
                );
            }
        }
    }
}
