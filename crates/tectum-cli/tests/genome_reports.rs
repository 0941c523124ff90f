//! Reports of a genome run: warnings before it, notes after it, pictures whose numbers are those of
//! the spikes, and refusals that say what to do.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// An input area onto a middle that excites itself; both have 8 neurons.
fn genome() -> Value {
    json!({"version": "2.1", "genome_title": "pair", "physiology": {"simulation_timestep": 1.0 / 15.0}, "blueprint": {
        "i__inp": {"group_id": "IPU", "block_boundaries": [8, 1, 1], "mp_charge_accumulation": true, "psp_uniform_distribution": true,
                   "cortical_mapping_dst": {"c__mid": [["block_to_block", 1, 3, false]]}},
        "c__mid": {"block_boundaries": [8, 1, 1], "mp_charge_accumulation": true, "firing_threshold": 4, "leak_coefficient": 0.5},
    }})
}

/// The genome with a mapping of the middle to itself.
fn learning(rule: Value) -> Value {
    let mut genome = genome();
    genome["blueprint"]["c__mid"]["cortical_mapping_dst"] = json!({"c__mid": [rule]});
    genome
}

/// A separate folder for the test, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, genome: &Value) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-reports-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        std::fs::write(path.join("g.json"), genome.to_string()).expect("writable");
        Self(path)
    }

    fn tectum(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        command
            .env("NODEVICE_SELECT", "1")
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
            .args(line.split_whitespace())
            .output()
            .expect("the binary starts")
    }

    /// Standard output and standard error of a command that succeeds.
    fn shown(&self, line: &str) -> [String; 2] {
        let output = self.tectum(line);
        let [out, err] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{line}: {err}");
        [out, err]
    }

    /// Standard error of a command that fails.
    fn refused(&self, line: &str) -> String {
        let output = self.tectum(line);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{line}"
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const RUN: &str = "run g.json --bursts 20 --stimulus 0.5 --device cpu";

/// The texts of a picture, without tags.
fn texts(svg: &str) -> Vec<&str> {
    svg.split("<text")
        .skip(1)
        .filter_map(|text| Some(text.split_once('>')?.1.split_once("</text>")?.0.trim()))
        .collect()
}

#[test]
fn the_numbers_of_a_picture_of_rates_are_those_of_the_spikes() {
    let place = Place::new("rates", &genome());
    for bursts in [300, 700, 1000, 2345] {
        place.shown(&format!("run g.json --bursts {bursts} --stimulus 0.3 --seed 1 --device cpu --plot pic --spikes s.csv --quiet"));
        let spikes = std::fs::read_to_string(place.0.join("s.csv")).expect("there");
        let svg = std::fs::read_to_string(place.0.join("pic/rates.svg"))
            .expect("there")
            .replace("&apos;", "'");
        let areas = std::fs::read_to_string(place.0.join("s.areas.csv")).expect("there");
        let mut expected = Vec::new();
        for area in areas
            .lines()
            .skip(1)
            .filter_map(|row| row.split(',').next())
        {
            let mut counts = vec![0u32; bursts + 1];
            for row in spikes.lines().filter(|row| row.ends_with(area)) {
                counts[row
                    .split(',')
                    .next()
                    .and_then(|burst| burst.parse::<usize>().ok())
                    .expect("a burst")] += 1;
            }
            let most = 100.0 * f64::from(counts.iter().max().copied().expect("counts")) / 8.0;
            let mean = f64::from(counts.iter().sum::<u32>()) / (8.0 * bursts as f64);
            let hertz = 15.0 * mean;
            let decimals = (2 - hertz.log10().floor() as i32) as usize;
            expected.extend([
                format!("mean {:.1} % ({hertz:.decimals$} Hz)", 100.0 * mean),
                format!("maximum {most:.1} %"),
            ]);
        }
        let found = texts(&svg);
        let numbers: Vec<&&str> = found
            .iter()
            .filter(|text| {
                text.starts_with("mean ") && text.ends_with("Hz)")
                    || text.starts_with("maximum ") && text.ends_with('%')
            })
            .collect();
        assert_eq!(
            numbers,
            expected
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .iter()
                .collect::<Vec<_>>(),
            "{bursts}"
        );
        let bin = match bursts.div_ceil(700) {
            1 => "fraction of an area's neurons, each area to its maximum".to_owned(),
            bin => format!("mean of {bin} bursts"),
        };
        assert!(
            found.contains(&bin.as_str()) && found.contains(&"burst of 66.6667 ms"),
            "{found:?}"
        );
    }
}

#[test]
fn settings_without_effect_are_warnings_of_inspect_and_before_a_run() {
    let cases = [
        (
            json!(["projector", 1, 1, false, 0, 0, 0, 0, 3]),
            "c__mid to c__mid (3 bursts)",
            "no",
        ),
        (
            json!(["projector", 1, 1, false, 0, 0, 0, 0, 0]),
            "c__mid to c__mid (0 bursts)",
            "no",
        ),
        (
            json!(["projector", 1, 1, true, 1000, 1, 1, 1]),
            "(gain 1000 becomes 255, loss 1000 becomes 255)",
            "+255 / -255, window 1",
        ),
        (
            json!(["projector", 1, 1, true, -1, 1, 1, 1]),
            "is plastic without a gain or loss, so that nothing is learnt",
            "no",
        ),
        (
            json!(["projector", 1, 1, true, 0.4, 1, 1, 1]),
            "(gain 0.4 becomes 0, loss 0.4 becomes 0)",
            "no",
        ),
    ];
    for (rule, expected, plastic) in cases {
        let place = Place::new("without", &learning(rule.clone()));
        let [shown, _] = place.shown("inspect g.json");
        assert!(
            shown
                .lines()
                .any(|line| line.starts_with("warning: 1 mapping ") && line.contains(expected)),
            "{rule}: {shown}"
        );
        assert!(
            shown.lines().any(|line| line.starts_with("c__mid  c__mid")
                && line.ends_with(&format!("  {plastic}"))),
            "{rule}: {shown}"
        );
        for options in ["", " --quiet", " --json"] {
            let [_, warned] = place.shown(&format!("{RUN}{options}"));
            assert!(
                warned
                    .lines()
                    .any(|line| line.starts_with("warning: 1 mapping ") && line.contains(expected)),
                "{rule}{options}: {warned}"
            );
        }
        let report: Value =
            serde_json::from_str(&place.shown(&format!("{RUN} --json"))[0]).expect("JSON");
        assert!(report["notes"].to_string().contains(expected), "{report}");
    }
    let mut refractory = learning(json!(["projector", 1, 1, true, 1, 1, 1, 2]));
    refractory["blueprint"]["c__mid"]["refractory_period"] = json!(2);
    let place = Place::new("window", &refractory);
    let expected = "c__mid to c__mid (window 2; c__mid has a refractory period of 2)";
    assert!(
        place.shown("inspect g.json")[0].contains(expected)
            && place.shown(RUN)[1].contains(expected)
    );
    assert!(
        !place.shown(&format!("{RUN} --frozen-weights"))[1].contains(expected),
        "nothing learns"
    );
}

#[test]
fn when_weights_lose_is_reported_and_can_be_chosen() {
    let mut genome = learning(json!(["block_to_block", 1, 1, true, 1, 1, 1]));
    // An input of each neuron in every burst makes it fire.
    genome["blueprint"]["i__inp"]["cortical_mapping_dst"]["c__mid"][0][2] = json!(4);
    let place = Place::new("losses", &genome);
    let lethal = "1 mapping loses its whole weight at the first loss, and sends nothing before it gains again: c__mid to c__mid (weight 1, loss 1)";
    let dead =
        "c__mid to c__mid: the weights of all 8 plastic synapses are 0, so that nothing is sent";
    let condition = |name: &str, reason: &str| format!("(weight loss {name}: {reason})");
    for (option, name, reason, is_dead) in [
        ("", "any_firing", "the file has version 2.1", true),
        (
            " --weight-loss steady_source",
            "steady_source",
            "as requested",
            false,
        ),
    ] {
        let expected = condition(name, reason);
        let [shown, _] = place.shown(&format!("inspect g.json{option}"));
        assert!(
            shown.contains(&expected) && shown.contains(lethal),
            "{shown}"
        );
        let inspection: Value =
            serde_json::from_str(&place.shown(&format!("inspect g.json --json{option}"))[0])
                .expect("JSON");
        assert_eq!(inspection["weight_loss"]["condition"], name, "{inspection}");
        let [report, warned] = place.shown(&format!(
            "run g.json --bursts 3 --stimulus 1 --device cpu --json{option}"
        ));
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let notes = report["notes"].to_string();
        assert!(
            notes.contains(&expected) && notes.contains(lethal) && warned.contains(lethal),
            "{notes}"
        );
        assert_eq!(
            (notes.contains(dead), warned.contains(dead)),
            (is_dead, is_dead),
            "{option}: {notes}"
        );
    }
    let refused = place.refused("run g.json --weight-loss old");
    assert!(
        refused.contains("detect, any_firing or steady_source needed"),
        "{refused}"
    );
}

#[test]
fn a_hub_is_explained_and_its_leak_is_a_note() {
    // 20,000 inputs of weight 200 leave the hub with no binary places.
    let genome = json!({"version": "2.1", "blueprint": {
        "i__inp": {"group_id": "IPU", "block_boundaries": [20_000, 1, 1], "mp_charge_accumulation": true, "psp_uniform_distribution": true,
                   "postsynaptic_current": 200, "cortical_mapping_dst": {"c__hub": [["all_to_all", 1, 200, false]]}},
        "c__hub": {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": true, "firing_threshold": 8, "leak_coefficient": 0.1},
    }});
    let place = Place::new("hub", &genome);
    let note = "area c__hub: a leak of 0.1 changes no potential within 9.000 of rest, more than 1 % of the threshold 8 (0 binary places); neuron 20000";
    let [explained, _] = place.shown("explain g.json --device cpu");
    for line in [
        "potentials: each neuron has its own binary places",
        "  16 binary places (20000 neurons), the maximum",
        "  0 binary places (1 neuron); neuron 20000 of c__hub can receive 800000000 in one burst, which with one more could pass 2^30",
        &format!("note: {note}"),
    ] {
        assert!(
            explained.lines().any(|shown| shown == line),
            "{line}\n{explained}"
        );
    }
    let [inspected, _] = place.shown("inspect g.json");
    assert!(
        inspected
            .lines()
            .any(|line| line == format!("warning: {note}")),
        "{inspected}"
    );
    let [report, warned] = place.shown("run g.json --bursts 2 --device cpu --json");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(
        (&report["fraction_bits"], &report["max_fraction_bits"]),
        (&json!(0), &json!(16))
    );
    assert!(
        report["notes"].to_string().contains(note) && warned.contains(note),
        "{report}"
    );
}

#[test]
fn converted_units_are_notes_of_a_run() {
    let mut legacy = genome();
    let areas = legacy["blueprint"].as_object_mut().expect("areas");
    for (number, leak) in [10, 20, 30, 40, 50].into_iter().enumerate() {
        areas.insert(format!("more_{number}"), json!({"block_boundaries": [1, 1, 1], "mp_charge_accumulation": true, "leak_coefficient": leak}));
    }
    let place = Place::new("units", &legacy);
    let head = "note: units: leak is legacy, an amount of potential (area more_0: \"leak_coefficient\": 10 exceeds 1); 6 values were converted: ";
    let [shown, _] = place.shown(RUN);
    let note = shown
        .lines()
        .find_map(|line| line.strip_prefix(head))
        .unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(
        note,
        "0.5 became 0.125 (c__mid), 10 became 1 (more_0), 20 became 1 (more_1), and 3 other changes"
    );
    assert!(
        shown.contains("note: units: --verbose gives every change"),
        "{shown}"
    );
    let [shown, _] = place.shown(&format!("{RUN} --verbose"));
    assert!(
        shown.contains("50 became 1 (more_4") && !shown.contains("other change"),
        "{shown}"
    );
}

#[test]
fn a_stimulus_that_can_have_no_effect_is_a_warning() {
    let mut without = genome();
    without["blueprint"]["i__inp"]["group_id"] = json!("INPUT");
    let place = Place::new("stimulus", &without);
    let [shown, warned] = place.shown(RUN);
    assert_eq!(
        warned,
        "warning: no input area: --stimulus has no effect; an input area has the group IPU\n"
    );
    assert!(
        shown.contains(
            "group \"INPUT\" is unknown; CUSTOM taken; known: IPU, OPU, CORE, CUSTOM, MEMORY"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("0 synaptic events\n"),
        "no rate of nothing: {shown}"
    );
    let place = Place::new("amplitude", &genome());
    for (amplitude, is_warned) in [("-3", true), ("0", true), ("0.5", false)] {
        let [_, warned] = place.shown(&format!("{RUN} --amplitude={amplitude}"));
        assert_eq!(
            warned.contains("it raises no potential, so that the stimulus makes no neuron fire"),
            is_warned,
            "{amplitude}: {warned}"
        );
    }
}

#[test]
fn results_alone_are_counts_and_hash_and_nothing_is_reported_that_was_not_executed() {
    let place = Place::new(
        "results",
        &learning(json!(["projector", 1, 1, true, 1, 1, 1, 1])),
    );
    let [quiet, _] = place.shown(&format!("{RUN} --quiet"));
    let report: Value =
        serde_json::from_str(&place.shown(&format!("{RUN} --quiet --json"))[0]).expect("JSON");
    let text = |key: &str| report[key].to_string().replace('"', "");
    assert_eq!(
        quiet,
        format!(
            "20 bursts, {} spikes, {} synaptic events\nspike hash {}\n",
            text("spikes"),
            text("events"),
            text("spike_hash")
        )
    );
    let [whole, _] = place.shown(RUN);
    assert!(
        whole.contains(" in 1 shard,") && whole.contains(" at 255 (maximum)"),
        "{whole}"
    );
    let [null, _] = place.shown(&RUN.replace("cpu", "null"));
    assert!(
        null.contains("nothing was executed")
            && !null.contains("plastic synapses")
            && !null.contains("spike hash"),
        "{null}"
    );
    assert_eq!(
        place.shown(&format!("{} --quiet", RUN.replace("cpu", "null")))[0],
        ""
    );
}

#[test]
fn synapses_that_are_drawn_are_counted_for_a_seed() {
    let place = Place::new(
        "drawn",
        &learning(
            json!({"morphology_id": "all_to_all", "postSynapticCurrent_multiplier": 1, "plasticity_flag": false, "synapse_attractivity": 50}),
        ),
    );
    let [shown, _] = place.shown("inspect g.json");
    assert!(
        shown.contains("66.6667 ms a burst")
            && shown.ends_with(" synapses with seed 0; another seed draws other synapses\n"),
        "{shown}"
    );
    assert!(
        Place::new("whole", &genome()).shown("inspect g.json")[0]
            .ends_with("a run has 16 neurons and 8 synapses\n")
    );
}

#[test]
fn refusals_say_what_is_meant() {
    let place = Place::new("refusals", &genome());
    let mut misspelt = learning(json!(["random", 1, 1, false]));
    std::fs::write(place.0.join("random.json"), misspelt.to_string()).expect("writable");
    misspelt["blueprint"]["c__mid"]["leak_coefficient"] = json!("LEAK");
    std::fs::write(
        place.0.join("nan.json"),
        misspelt.to_string().replace("\"LEAK\"", "NaN"),
    )
    .expect("writable");
    let scenario = "[body]\nname = \"pendulum\"\n[brain]\ngenome = \"g.json\"\nmotors = [{ channel = 0, area = \"o\" }]\n";
    std::fs::write(place.0.join("s.toml"), scenario).expect("writable");
    for (line, expected) in [
        (
            "run g --bursts 10",
            "error: run g: there is no such file or scenario; perhaps g.json\n",
        ),
        (
            "run relu --seed 1",
            "error: run relu: there is no such file or scenario; perhaps relu.atlas\n",
        ),
        (
            "run nosuch --bursts 10",
            "error: run nosuch: there is no such file: scenario \"nosuch\" is unknown",
        ),
        (
            "run g.json --plot pic.png",
            "error: --plot pic.png: this option names a folder, which receives several pictures; for example pic\n",
        ),
        (
            "run g.json --spikes s.parquet",
            "error: --spikes s.parquet: what is written is not parquet; a name that ends in .npy or .csv is needed\n",
        ),
        (
            "run random.json",
            "morphology \"random\" is unknown; known: block_to_block, ",
        ),
        (
            "run nan.json",
            "not JSON: NaN at line 1; JSON has only finite numbers",
        ),
        (
            "run s.toml --spikes s.npy",
            "--spikes is for genomes, and this is a scenario; the genome of its brain can run alone: tectum run g.json --spikes",
        ),
        (
            "run s.toml --device cpu",
            "error: s.toml:5: brain.motors[0].area: g.json has no area \"o\"; it has no output area\n",
        ),
    ] {
        let message = place.refused(line);
        assert!(
            if expected.ends_with('\n') {
                message == expected
            } else {
                message.contains(expected)
            },
            "{line}: {message}"
        );
    }
    assert!(!place.0.join("pic.png").exists());
    place.shown("run g.json --bursts 5 --record r.mcap --device cpu");
    let expected = "a recording of spikes cannot be exported; tectum run GENOME.json --spikes FILE.npy writes every firing";
    assert!(place.refused("export r.mcap").contains(expected));
}

#[test]
fn a_motor_that_never_fires_is_a_note_of_the_run_and_an_export_is_quiet() {
    let mut brain = genome();
    brain["blueprint"]["i__inp"]["block_boundaries"] = json!([1, 1, 8]);
    brain["blueprint"]["c__mid"] = json!({"group_id": "OPU", "block_boundaries": [1, 1, 8], "mp_charge_accumulation": true, "firing_threshold": 100});
    let place = Place::new("motor", &brain);
    let scenario = "[body]\nname = \"pendulum\"\n[brain]\ngenome = \"g.json\"\nsensors = [{ channel = 0, area = \"i__inp\" }]\nmotors = [{ channel = 0, area = \"c__mid\" }]\n\
                    [loop]\nseconds = 1\nclock = \"sim\"\n";
    std::fs::write(place.0.join("s.toml"), scenario).expect("writable");
    let [shown, _] = place.shown("run s.toml --device cpu --no-plots");
    assert!(
        shown.lines().any(|line| line.starts_with("note ")
            && line.ends_with("motor torque (area c__mid) never fired: at rest in 20 of 20 ticks")),
        "{shown}"
    );
    let summary = std::fs::read_to_string(place.0.join("runs/1/summary.json")).expect("there");
    assert!(summary.contains("never fired"), "{summary}");
    assert_eq!(
        place.shown("export runs/1 --quiet")[0],
        "runs/1/trace.csv: 20 rows\nruns/1/trace.npy: 20 rows\n"
    );
}

/// Two areas that are connected all to all, of this size each.
fn all_to_all(size: [u32; 3]) -> Value {
    json!({"version": "2.1", "blueprint": {
        "i__inp": {"group_id": "IPU", "block_boundaries": size,
                   "cortical_mapping_dst": {"c__mid": [["all_to_all", 1, 1, false]]}},
        "c__mid": {"block_boundaries": size},
    }})
}

#[test]
fn a_genome_beyond_the_memory_is_refused_with_both_numbers() {
    let large = [1 << 20, 1 << 9, 1];
    let mut drawn = all_to_all(large);
    drawn["blueprint"]["i__inp"]["cortical_mapping_dst"]["c__mid"][0] = json!({"morphology_id": "all_to_all", "morphology_scalar": [1, 1, 1],
               "postSynapticCurrent_multiplier": 1, "plasticity_flag": false, "synapse_attractivity": 1});
    let mut many_thresholds = all_to_all(large);
    many_thresholds["blueprint"]["i__inp"]["firing_threshold_increment_x"] = json!(0.5);
    for (name, genome) in [
        ("exact", all_to_all(large)),
        ("drawn", drawn),
        ("thresholds", many_thresholds),
    ] {
        let place = Place::new(&format!("memory-{name}"), &genome);
        let output = place.tectum("run g.json --device cpu --bursts 1");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{name}: {message}");
        let (_, numbers) = message
            .split_once(": ")
            .unwrap_or_else(|| panic!("{name}: {message}"));
        let numbers: Vec<f64> = numbers
            .split(|character: char| !character.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect();
        let [.., needed, available] = numbers[..] else {
            panic!("{name}: {message}");
        };
        assert!(
            message.contains(" bytes of memory are needed, ") && needed > available,
            "{name}: {message}"
        );
    }
}

/// The synapses in a file of `--edges`: source, target, weight, psp, rule and mapping.
fn edges(bytes: &[u8]) -> Vec<(u32, u32, i16, u8, i8, u32)> {
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes[start..]
        .chunks_exact(16)
        .map(|row| {
            (
                word(&row[..4]),
                word(&row[4..8]),
                i16::from_le_bytes([row[8], row[9]]),
                row[10],
                row[11] as i8,
                word(&row[12..]),
            )
        })
        .collect()
}

#[test]
fn the_synapses_of_a_genome_are_written_to_a_file() {
    let mut genome = learning(json!(["lateral_+x", 1, -2, true, 2, 3, 1]));
    genome["blueprint"]["i__inp"]["postsynaptic_current"] = json!(7);
    let place = Place::new("edges", &genome);
    let [shown, _] = place.shown("inspect g.json --edges e.npy");
    assert!(shown.contains("\n15 synapses written\n"), "{shown}");
    let bytes = std::fs::read(place.0.join("e.npy")).expect("written");
    assert!(
        String::from_utf8_lossy(&bytes[..256]).contains(
            "[('source', '<u4'), ('target', '<u4'), ('weight', '<i2'), ('psp', '|u1'), ('rule', '|i1'), ('mapping', '<u4')], 'fortran_order': False, 'shape': (15,)"
        )
    );
    let expected: Vec<_> = (0..8)
        .map(|x| (x, 8 + x, 3, 7, -1, 0))
        .chain((8..15).map(|x| (x, x + 1, -2, 1, 0, 1)))
        .collect();
    assert_eq!(edges(&bytes), expected);
    let [_, _] = place.shown("inspect g.json --edges e.csv");
    let read = |name: &str| std::fs::read_to_string(place.0.join(name)).expect("written");
    let rows: Vec<String> = expected
        .iter()
        .map(|(source, target, weight, psp, rule, mapping)| {
            format!("{source},{target},{weight},{psp},{rule},{mapping}\n")
        })
        .collect();
    assert_eq!(
        read("e.csv"),
        format!("source,target,weight,psp,rule,mapping\n{}", rows.concat())
    );
    assert_eq!(
        read("e.mappings.csv"),
        "mapping,source_area,target_area,morphology,psp_divided,psp_is_potential,rule,window,gain,loss,weight_loss\n\
         0,i__inp,c__mid,block_to_block,false,false,-1,,,,\n\
         1,c__mid,c__mid,lateral_+x,true,false,0,3,6,2,any_firing\n"
    );
    assert_eq!(read("e.areas.csv").lines().count(), 3);
    let inspection = &place.shown("inspect g.json --json --edges e.npy --seed 3")[0];
    assert!(inspection.contains("\"edges\":15"), "{inspection}");
    let message = place.refused("inspect g.json --edges e.parquet");
    assert!(
        message.contains("a name that ends in .npy or .csv"),
        "{message}"
    );
}

/// A network that is rebuilt from the file has the degrees of the one that runs, with the neurons of
/// memories and synapses that can grow.
#[test]
fn the_synapses_in_the_file_are_those_of_the_run() {
    let genome = json!({"version": "2.1", "blueprint": {
        "i__inp": {"group_id": "IPU", "block_boundaries": [6, 1, 1], "cortical_mapping_dst": {
            "memory": [["memory", 1, 1, false]],
            "c__mid": [["associative_memory", 1, 1, true, 1, 7, 1],
                       {"morphology_id": "all_to_all", "morphology_scalar": [1, 1, 1],
                        "postSynapticCurrent_multiplier": 1, "plasticity_flag": false, "synapse_attractivity": 50}]}},
        "memory": {"sub_group_id": "MEMORY", "block_boundaries": [1, 1, 1],
                   "cortical_mapping_dst": {"c__mid": [["projector", 1, 9, true, 2, 3, 1]]}},
        "c__mid": {"block_boundaries": [4, 1, 1]},
    }});
    let place = Place::new("edges-of-run", &genome);
    for seed in ["0", "9"] {
        let line = format!("inspect g.json --json --edges e.npy --seed {seed}");
        let inspection: Value = serde_json::from_str(&place.shown(&line)[0]).expect("JSON");
        let run = format!("run g.json --bursts 1 --device cpu --json --seed {seed}");
        let run: Value = serde_json::from_str(&place.shown(&run)[0]).expect("JSON");
        let rows = edges(&std::fs::read(place.0.join("e.npy")).expect("written"));
        assert_eq!(json!(rows.len()), run["synapses"], "{run}");
        assert_eq!(inspection["edges"], run["synapses"], "{inspection}");
        // Neurons of the memory follow those of the genome.
        assert!(rows.iter().any(|row| row.0 >= 11), "{seed}");
    }
    let areas = std::fs::read_to_string(place.0.join("e.areas.csv")).expect("written");
    assert!(areas.contains("memory,,patterns,11,1024,,,,\n"), "{areas}");
}
