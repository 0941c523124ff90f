use super::{BrainSpec, EMBEDDED, Scenario};

const HEAD: &str = "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\n";

#[test]
fn mistakes_are_reported_with_line_and_fix() {
    let cases = [
        (
            "[body]\nname = \"seeker\"\n[brain]\nname = \"field\"\nreward = \"light\"\n",
            ":5: reward \"light\" is unknown; known: light_left, light_right, whisker_left, whisker_ahead, whisker_right, bump, reward",
        ),
        (
            "[body]\nname = \"rig\"\n[brian]\nname = \"lqr\"\n",
            ":3: unknown table [brian], perhaps [brain]; known: name, body, brain, loop",
        ),
        (
            "[body]\nname = \"rgi\"\n",
            ":2: body \"rgi\" is unknown, perhaps \"rig\"; known: rig, pendulum, cart_pole, acrobot, seeker",
        ),
        ("[body]\nname = 3\n", ":2: name is 3, needs a string"),
        (
            "[body]\nname = \"rig\"\nstart = \"flying\"\n",
            ":3: start \"flying\" is unknown; known: hanging, random",
        ),
        (
            "[body]\nname = \"cart_pole\"\nstart = \"hanging\"\n",
            ":3: cart_pole: start \"hanging\" is beyond its 12 degrees; known: random",
        ),
        (
            "[body]\nname = \"rig\"\n[body.disturbances]\ndelay_samples = 9\n",
            ":4: delay_samples is 9, needs a whole number from 0 to 8",
        ),
        (
            "[body]\nname = \"rig\"\n[body.disturbances]\nlength = 9\n",
            ":4: unknown key \"length\"; known: pole_length, delay_samples, noise, outlier_fraction",
        ),
        (
            "[body]\nname = \"acrobot\"\n[body.disturbances]\ndelay_samples = 1\n",
            ":2: body \"acrobot\" has no disturbances; known: rig",
        ),
        (
            "[brain]\nname = \"lqr\"\n",
            ": [body] needs the key \"name\"",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"field\"\ncells = [8, 8, 10]\n",
            ":4: field: an axis of 10 cells; needs a multiple of 4 from 4 to 64",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"field\"\nextra_devices = \"cpu\"\n",
            ":5: extra_devices is \"cpu\", needs a list of strings",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"field\"\ncells = [4, 4, 4]\nextra_devices = [\"cpu\", \"cpu\", \"cpu\", \"cpu\"]\n",
            ":4: field: 5 devices for 4 sites along X",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"field\"\ncells = [8, 8]\n",
            ":4: cells: 2 axes given, 3 needed",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"field\"\n[brain.coefficients]\ncoupling = 2\n",
            ":4: field: coupling is 2; needs 0 to 1",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"pid\"\n",
            ":4: brain \"pid\" is unknown; known: mppi, lqr, mpc, adaptive, zero, safe, field, genome, policy",
        ),
        (
            "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\nsamples = 3\n",
            ":5: unknown key \"samples\"; known: name",
        ),
        (
            "[body]\nname = \"rig\"\nname = \"rig\"\n",
            ":3: duplicate key",
        ),
        ("[body\n", ":1: unclosed table, expected `]`"),
    ];
    let with_head = [
        (
            "horizon = 0\n",
            ":5: horizon is 0, needs a whole number from 1 to 1024",
        ),
        (
            "horizon = \"long\"\n",
            ":5: horizon is \"long\", needs a whole number from 1 to 1024",
        ),
        (
            "horizon = 2.5\n",
            ":5: horizon is 2.5, needs a whole number from 1 to 1024",
        ),
        ("sigma = nan\n", ":5: sigma is nan, needs a number above 0"),
        (
            "\nsigma_min = -1\n",
            ":6: sigma_min is -1, needs a number, 0 or above",
        ),
        (
            "[brain.cost]\nspeed = 1\n",
            ":6: unknown key \"speed\"; known: la_position, la_velocity, pend_velocity, pend_position, cmd_volts",
        ),
        (
            "[brain.twin]\nhidden = [64, 0]\n",
            ":6: hidden is 0, needs a whole number from 1 to 4096",
        ),
        ("twin = 1\n", ":5: twin is 1, needs a table"),
        (
            "rate_weight = 1\nmodel = \"plant\"\n",
            ":5: \"rate_weight\" has no effect: model \"plant\" learns nothing, and its cost is the body's own: weights or reward",
        ),
        (
            "model = \"plant\"\n[brain.twin]\nsteps = 3\n",
            ":6: \"twin\" has no effect: model \"plant\" learns nothing, and its cost is the body's own: weights or reward",
        ),
        (
            "[brain.twin]\nfile = \"a\"\nsteps = 3\n",
            ":7: \"steps\" has no effect: the twin in the file is trained",
        ),
        (
            "[brain.twin.online]\nreplay_capacity = 5\n",
            ":6: replay_capacity is 5, needs a whole number from 20 to 1048576",
        ),
        (
            "[brain.twin]\nsteps = 3\nonline = { warm_up = 40 }\n",
            ":6: \"steps\" has no effect: a twin with a warm_up starts untrained",
        ),
        (
            "[loop]\nclock = \"fast\"\n",
            ":6: clock \"fast\" is unknown; known: real, sim",
        ),
        (
            "[loop]\nseconds = 0\n",
            ":6: seconds is 0, needs a number above 0, at most 1000000",
        ),
        (
            "[lop]\nseconds = 1\n",
            ":5: unknown table [lop], perhaps [loop]; known: name, body, brain, loop",
        ),
        (
            "[brain.twn]\nsteps = 1\n",
            ":5: unknown table [brain.twn], perhaps [brain.twin]; known: name, model, samples, horizon, hold, iterations, sigma, sigma_min, temperature, rate_weight, energy_weight, terminal_multiplier, cost, twin",
        ),
    ];
    let with_genome = [
        ("", ": [brain] needs the key \"motors\""),
        ("motors = 3\n", ":5: motors is 3, needs a list of tables"),
        ("motors = [3]\n", ":5: motors is 3, needs a list of tables"),
        (
            "motors = [{ area = \"o\" }]\n",
            ": [brain.motors[0]] needs the key \"channel\"",
        ),
        (
            "motors = [{ channel = 1, area = \"o\" }]\n",
            ":5: channel is 1, needs one of 0 cmd_volts",
        ),
        (
            "motors = [{ channel = 0 }]\n",
            ": [brain.motors[0]] needs the key \"area\"",
        ),
        (
            "motors = [{ channel = 0, area = \"o\", rest = -13 }]\n",
            ":5: rest is -13, needs a number from -5 to 5",
        ),
        (
            "motors = [{ channel = 0, area = \"o\", z = 1 }]\n",
            ":5: unknown key \"z\"; known: channel, area, x, y, coding, rest",
        ),
        (
            "[[brain.sensors]]\nchannel = \"la_speed\"\n",
            ":6: channel is \"la_speed\", needs one of 0 la_position, 1 la_velocity, 2 pend_velocity, 3 pend_position",
        ),
        (
            "sensors = [{ channel = 0, area = \"i\", coding = \"cubic\" }]\n",
            ":5: coding \"cubic\" is unknown; known: linear, fractional",
        ),
        (
            "sensors = [{ channel = 0, area = \"i\", x = 1048576 }]\n",
            ":5: x is 1048576, needs a whole number from 0 to 1048575",
        ),
        (
            "sensors = [{ channel = 0, area = \"i\", amount = 0 }]\n",
            ":5: amount is 0, needs a number above 0",
        ),
        (
            "bursts_per_tick = 0\n",
            ":5: bursts_per_tick is 0, needs a whole number from 1 to 4096",
        ),
        (
            "name = \"mppi\"\n",
            ":4: unknown key \"genome\"; known: name, model, samples, horizon, hold, iterations, sigma, sigma_min, temperature, rate_weight, energy_weight, terminal_multiplier, cost, twin",
        ),
        (
            "name = \"genome\"\nunits = \"new\"\n",
            ":6: units \"new\" is unknown; known: detect, fraction, legacy",
        ),
    ];
    let with_genome = with_genome.map(|(tail, expected)| {
        (
            format!("[body]\nname = \"rig\"\n[brain]\ngenome = \"g.json\"\n{tail}"),
            expected,
        )
    });
    let with_head = with_head.map(|(tail, expected)| (format!("{HEAD}{tail}"), expected));
    for (text, expected) in cases
        .map(|(text, expected)| (text.to_owned(), expected))
        .into_iter()
        .chain(with_head)
        .chain(with_genome)
    {
        let error = Scenario::parse(&text, "s.toml", "s").expect_err(expected);
        assert_eq!(error.to_string(), format!("s.toml{expected}"), "{text}");
    }
}

#[test]
fn the_effective_scenario_reads_back_as_itself() {
    let settings = "samples = 8\nhold = 2\nsigma = 3\nsigma_min = 0.15\ntemperature = 0.1\n[brain.cost]\npend_position = 2.5\n\
                    [brain.twin]\nhidden = [64, 32]\nsteps = 30\nlearning_rate = 4e-3\nonline = { every = 50, replay_capacity = 2000 }\n[loop]\nseed = 0x10\nclock = \"sim\"\n";
    let mut scenario =
        Scenario::parse(&format!("{HEAD}{settings}"), "s.toml", "s").expect("correct");
    scenario.brain.set_data("rig.csv").expect("mppi has a twin");
    let text = scenario.to_toml().expect("plain numbers");
    assert_eq!(
        Scenario::parse(&text, "t.toml", "t").expect("correct"),
        scenario,
        "{text}"
    );
    let BrainSpec::Mppi(mppi) = &scenario.brain else {
        panic!("{:?}", scenario.brain)
    };
    assert_eq!(
        (mppi.sigma, mppi.cost["pend_position"], scenario.run.seed),
        (Some(3.0), 2.5, 16)
    );
}

#[test]
fn a_genome_is_wired_by_its_scenario_and_to_its_body_alone() {
    let text = "[body]\nname = \"pendulum\"\n[brain]\ngenome = \"g.json\"\nbursts_per_tick = 2\nidle_update = \"freeze\"\nweights = \"frozen\"\n\
                sensors = [{ channel = \"speed\", area = \"eye\", x = 1, coding = \"fractional\", amount = 2.5 }]\n\
                [[brain.motors]]\nchannel = 0\narea = \"arm\"\nrest = -1\n";
    let mut scenario = Scenario::parse(text, "s.toml", "s").expect("correct");
    let written = scenario.to_toml().expect("plain numbers");
    assert_eq!(
        Scenario::parse(&written, "t.toml", "s").expect("correct"),
        scenario,
        "{written}"
    );
    let BrainSpec::Genome(genome) = &scenario.brain else {
        panic!("{:?}", scenario.brain)
    };
    assert_eq!(
        (
            genome.sensors[0].channel,
            genome.sensors[0].amount,
            genome.motors[0].rest,
            genome.bursts_per_tick
        ),
        (1, Some(2.5), Some(-1.0), 2)
    );
    let before = scenario.clone();
    assert_eq!(
        scenario.set_body("rig").expect_err("wired").to_string(),
        "body rig: the genome's sensors and motors are those of body pendulum"
    );
    scenario.set_body("pendulum").expect("its own");
    scenario.set_brain("genome").expect("its own");
    assert_eq!(scenario, before);
    scenario.set_brain("lqr").expect("known");
    assert!(
        scenario
            .set_brain("genome")
            .expect_err("wired")
            .to_string()
            .contains("wired to its body by a scenario")
    );
}

#[test]
fn every_scenario_of_the_build_is_correct_and_found_by_its_short_name() {
    for (name, text) in EMBEDDED {
        let scenario = Scenario::parse(text, name, name).expect("correct");
        assert_eq!(Scenario::open(name).expect("found"), scenario);
        let text = scenario.to_toml().expect("plain numbers");
        assert_eq!(
            Scenario::parse(&text, "again", "again").expect("correct"),
            scenario
        );
    }
    let error = Scenario::open("pendlum").expect_err("misspelt").to_string();
    assert!(
        error.contains("\"pendlum\" is unknown")
            && error.contains("pendulum, gym_pendulum, learner, other_rig, cart_pole, seeker"),
        "{error}"
    );
}

#[test]
fn another_body_or_brain_takes_defaults_and_the_same_keeps_its_settings() {
    let mut scenario = Scenario::parse(&format!("{HEAD}samples = 8\n"), "s", "s").expect("correct");
    scenario.set_brain("mppi").expect("known");
    scenario.set_body("rig").expect("known");
    assert!(matches!(&scenario.brain, BrainSpec::Mppi(mppi) if mppi.samples == Some(8)));
    scenario.set_body("pendulum").expect("known");
    assert_eq!(scenario.brain, BrainSpec::named("mppi").expect("known"));
    scenario.set_brain("lqr").expect("known");
    assert_eq!(scenario.brain.name(), "lqr");
    assert!(scenario.brain.set_data("rig.csv").is_err());
    assert!(
        scenario.set_brain("pid").is_err()
            && scenario.set_body("arm").is_err()
            && scenario.set_seconds(f64::NAN).is_err()
    );
}

#[test]
fn names_of_an_earlier_version_are_read_with_a_warning_that_names_the_place() {
    let rig = "[body]\nname = \"rig\"\n[body.disturbances]\nLATE = 1\nLEAPS = 0.02\n[brain]\nname = \"lqr\"\n[loop.guard.pend_position]\nJUMP = 60.0\n";
    let field = "[body]\nname = \"seeker\"\n[brain]\nname = \"field\"\nBESIDE = [\"cpu\"]\n";
    let genome = "[body]\nname = \"seeker\"\n[brain]\ngenome = \"g.json\"\nSILENCE = \"SKIPS\"\nmotors = [{ channel = 0, area = \"a\", x = 0, y = 0, coding = \"linear\" }]\n";
    let counted = genome.replace("SKIPS", "COUNTS");
    let counted = counted.as_str();
    let twin =
        "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\n[brain.twin.online]\nKEPT = 2000\n";
    let renamed = [
        (rig, "LATE", "late", "delay_samples"),
        (rig, "LEAPS", "leaps", "outlier_fraction"),
        (rig, "JUMP", "leap", "outlier_threshold"),
        (field, "BESIDE", "beside", "extra_devices"),
        (genome, "SILENCE", "silence", "idle_update"),
        (genome, "SKIPS", "skips", "freeze"),
        (counted, "COUNTS", "counts", "catch_up"),
        (twin, "KEPT", "kept", "replay_capacity"),
    ];
    let written = |text: &str, is_old: &dyn Fn(&str) -> bool| {
        renamed
            .iter()
            .fold(text.to_owned(), |text, (_, mark, old, new)| {
                text.replace(
                    &format!("{mark} "),
                    &format!("{} ", if is_old(mark) { old } else { new }),
                )
                .replace(
                    &format!("\"{mark}\""),
                    &format!("\"{}\"", if is_old(mark) { old } else { new }),
                )
            })
    };
    for (text, mark, old, new) in renamed {
        let read = |text: &str| {
            Scenario::parse(text, "s.toml", "s").unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let (current, mut former) = (
            read(&written(text, &|_| false)),
            read(&written(text, &|other| other == mark)),
        );
        assert!(current.warnings.is_empty(), "{:?}", current.warnings);
        let line = 1 + text
            .lines()
            .position(|line| line.contains(mark))
            .expect("the mark is there");
        let [warning] = &std::mem::take(&mut former.warnings)[..] else {
            panic!("{old}: one warning expected")
        };
        assert!(
            warning.starts_with(&format!("s.toml:{line}: "))
                && warning.contains(&format!("\"{old}\""))
                && warning.ends_with(&format!("is now \"{new}\"")),
            "{warning}"
        );
        assert_eq!(former, current);
    }
    let both = "[body]\nname = \"rig\"\n[body.disturbances]\nlate = 1\ndelay_samples = 1\n[brain]\nname = \"lqr\"\n";
    assert!(
        Scenario::parse(both, "s.toml", "s")
            .expect_err("both names")
            .to_string()
            .starts_with("s.toml:4: unknown key \"late\"")
    );
}
