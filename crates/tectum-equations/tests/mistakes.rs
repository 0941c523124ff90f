//! Mistakes in files: each has one message with line, column and what was expected; no input
//! panics.

use tectum_equations::{LIBRARY, System, Unit};

use super::Random;

/// A valid file, in which a mistake replaces a line or is added.
const LINES: [&str; 8] = [
    "body b",
    "period 10 ms",
    "parameter mass = 2 kg in 1 .. 3",
    "state x: m",
    "state v: m/s",
    "input force: N in -1 .. 1",
    "d/dt x = v",
    "d/dt v = force / mass",
];

/// The line that is replaced (from 1; the last for one that is added), its text, and parts of the
/// message.
const MISTAKES: &[(usize, &str, &str)] = &[
    (
        8,
        "d/dt v = force",
        "line 8, column 10: d/dt v needs m/s^2; this is N",
    ),
    (
        8,
        "d/dt v = force / mas",
        "line 8, column 18: mas is not defined above",
    ),
    (
        8,
        "d/dt v = force / mass + x",
        "line 8, column 25: the left side is m/s^2, the right side is m",
    ),
    (
        8,
        "d/dt v = sin(x)",
        "line 8, column 14: sin needs a plain number; this is m",
    ),
    (
        8,
        "d/dt v = force / (mass",
        "line 10, column 1: expected ), found observe",
    ),
    (
        8,
        "d/dt v = force / mass 3",
        "line 8, column 23: 3 is not expected here",
    ),
    (
        8,
        "d/dt v = x > 1 m",
        "line 8, column 10: this is a condition; expected a number",
    ),
    (
        8,
        "d/dt v = atan2(x)",
        "line 8, column 10: atan2 has 2 arguments, given 1",
    ),
    (
        8,
        "d/dt v = sqrt(x) * 1 [m]",
        "line 8, column 10: d/dt v needs m/s^2; this is m^1.5",
    ),
    (8, "d/dt v = x^0.3", "line 8, column 10: m has no power 0.3"),
    (
        8,
        "d/dt v = 9.81 [m/s^2",
        "line 10, column 1: expected ], found observe",
    ),
    (
        8,
        "d/dt v = 3 furlong",
        "line 8, column 12: furlong is no unit",
    ),
    (
        8,
        "d/dt w = force / mass",
        "line 8, column 6: w is no state that is declared above",
    ),
    (8, "d/dt x = v", "line 8, column 6: d/dt x is given twice"),
    (8, "reward = 1", "line 5, column 7: state v has no equation"),
    (2, "reward = 1", "line 1, column 1: the file has no period"),
    (
        9,
        "reward = if x == 1 m then 1 else 0",
        "line 9, column 15: numbers are compared with <, <=, > and >=",
    ),
    (
        9,
        "terminate when x = 1 m",
        "line 9, column 18: numbers are compared with <, <=, > and >=",
    ),
    (
        3,
        "parameter mass = 5 kg in 1 .. 3",
        "line 3, column 11: mass is 5 kg, which is outside its own range",
    ),
    (
        3,
        "parameter mass = 2 kg in 3 .. 1",
        "line 3, column 26: the range is empty",
    ),
    (
        3,
        "parameter mass = 2 kg in 1 .. 3 s",
        "line 3, column 26: the range is in s; expected kg",
    ),
    (
        3,
        "parameter mass = two kg",
        "line 3, column 18: expected a number, found two",
    ),
    (
        3,
        "parameter state = 2 kg",
        "line 3, column 11: state is a keyword, not a name",
    ),
    (
        4,
        "state mass: m",
        "line 4, column 7: mass is defined already",
    ),
    (
        4,
        "state x",
        "line 4, column 8: expected :, found the end of the line",
    ),
    (4, "state x: m start 1 s", "1 s"),
    (4, "state x: m start force", "force is not defined above"),
    (
        5,
        "state v: m/s^99",
        "line 5, column 14: the exponent of a unit is a whole number from 1 to 12",
    ),
    (
        6,
        "input force: N",
        "line 6, column 15: input force needs its limits: in LOW .. HIGH",
    ),
    (
        6,
        "input force: N in -1 .. 1 safe 2",
        "line 6, column 27: the safe value of force is outside its limits",
    ),
    (2, "period 0 ms", "line 2, column 8: the period is 0 s"),
    (
        2,
        "period 10",
        "line 2, column 10: the period needs a unit, such as 20 ms",
    ),
    (
        2,
        "period",
        "line 2, column 7: expected a number, found the end of the line",
    ),
    (2, "period 10 m", "line 2, column 11: m is m; expected s"),
    (2, "period 1e999 s", "1e999 is no number"),
    (1, "body 3", "line 1, column 6: expected a name, found 3"),
    (1, "# no name", "the file names no body"),
    (
        9,
        "integrate leapfrog",
        "line 9, column 11: leapfrog is no integrator; known: euler, semi_implicit, rk4",
    ),
    (
        9,
        "integrate rk4 steps 0",
        "line 9, column 21: 0 steps in a period",
    ),
    (9, "period 3 ms", "line 9, column 1: period is given twice"),
    (9, "then = 3", "line 9, column 1: then begins no statement"),
    (9, "sin = 3", "line 9, column 1: sin is defined already"),
    (
        9,
        "a + b = 3",
        "line 9, column 1: a is no keyword, and a definition continues with =",
    ),
    (
        9,
        "= 3",
        "line 9, column 1: a statement begins with a keyword",
    ),
    (
        9,
        "reward = x",
        "line 9, column 10: the reward needs a plain number; this is m",
    ),
    (
        9,
        "terminate when x",
        "line 9, column 16: this is a number; expected a condition",
    ),
    (
        9,
        "terminate x > 1 m",
        "line 9, column 11: terminate continues with when",
    ),
    (
        9,
        "when x > 1 m: force = 1 N",
        "line 9, column 15: force is no state",
    ),
    (
        9,
        "when x > 1 m: x = 1 N",
        "line 9, column 19: x needs m; this is N",
    ),
    (
        9,
        "when x > 1 m: x = 1 m, x = 2 m",
        "line 9, column 24: x is set twice in one event",
    ),
    (
        9,
        "observe y: m = force * 1 [m/N]",
        "line 9, column 16: observation y depends on an input or on noise",
    ),
    (
        9,
        "observe y: 1 = x",
        "line 9, column 16: observation y needs a plain number; this is m",
    ),
    (
        9,
        "observe y: m = x wraps",
        "an angle that wraps needs a plain number; this is m",
    ),
    (
        9,
        "observe y: m = x scale 0",
        "line 9, column 18: a scale is above 0",
    ),
    (
        9,
        "keep x",
        "line 9, column 7: keep EXPRESSION continues with within and a bound",
    ),
    (
        9,
        "keep x within 1 kg",
        "line 9, column 6: what is kept needs kg; this is m",
    ),
    (
        9,
        "keep x within 1 m as upright",
        "line 9, column 22: a label is a text in quotes",
    ),
    (
        9,
        "weigh mass 1",
        "line 9, column 7: mass is no state and no input",
    ),
    (9, "weigh x -1", "line 9, column 9: a weight is 0 or above"),
    (
        9,
        "noise w: N gamma(1)",
        "line 9, column 12: gamma is no distribution; known: normal, uniform",
    ),
    (9, "x $ 3", "line 9, column 3: '$' has no meaning here"),
    (
        9,
        "keep x within 1 m as \"upright",
        "line 9, column 22: a text without an end",
    ),
];

#[test]
fn each_mistake_has_its_message_with_line_and_column() {
    for (line, text, expected) in MISTAKES {
        let mut lines = LINES.to_vec();
        lines.insert(8, "");
        lines[line - 1] = text;
        if *line != 9 || !text.starts_with("observe") {
            lines.push("observe x: m = x");
        }
        let error = System::parse(&lines.join("\n"), "b.plant")
            .expect_err(text)
            .to_string();
        assert!(
            error.starts_with("b.plant: line ") && error.contains(expected),
            "{text}\n{error}"
        );
        assert!(error.ends_with('^'), "{error}");
    }
}

#[test]
fn a_file_without_mistakes_is_read() {
    let text = [LINES.join("\n"), "observe x: m = x".to_owned()].join("\n");
    let system = System::parse(&text, "b.plant").expect("valid");
    assert_eq!(
        (system.name(), system.period_s(), system.states().len()),
        ("b", 0.01, 2)
    );
    let refused = |name, value| {
        system
            .with_parameters([(name, value)])
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        refused("mas", 1.0),
        "body b: it has no parameter \"mas\"; known: mass"
    );
    assert_eq!(
        refused("mass", 4.0),
        "body b: parameter mass is 4 kg; needs 1 to 3 kg"
    );
    assert_eq!(
        refused("mass", f64::NAN),
        "body b: parameter mass is NaN kg; needs 1 to 3 kg"
    );
}

#[test]
fn names_that_nothing_reads_are_warned_of() {
    let warnings = |added: &str| {
        let text = [
            LINES.join("\n"),
            "observe x: m = x".to_owned(),
            added.to_owned(),
        ]
        .join("\n");
        System::parse(&text, "b.plant")
            .expect("valid")
            .warnings()
            .to_vec()
    };
    assert!(warnings("").is_empty());
    assert_eq!(
        warnings("parameter air = 1 kg"),
        ["b.plant: line 10: parameter air is never used"]
    );
    assert_eq!(
        warnings("noise wind: N normal(1)"),
        ["b.plant: line 10: noise wind is never used"]
    );
    assert_eq!(
        warnings("Reward = 1"),
        ["b.plant: line 10: definition Reward is never used; the statement is written reward"]
    );
    assert_eq!(
        warnings("state spare: m\nd/dt spare = v"),
        ["b.plant: line 10: state spare is never used"]
    );
    for (origin, text) in LIBRARY {
        assert!(
            System::parse(text, origin)
                .expect(origin)
                .warnings()
                .is_empty(),
            "{origin}"
        );
    }
}

#[test]
fn units_of_columns_may_be_inches() {
    let scale = |text| Unit::parse(text).map(|unit| unit.scale);
    assert_eq!(
        (scale("in"), scale("in/s"), scale("N*in")),
        (Some(0.0254), Some(0.0254), Some(0.0254))
    );
    assert_eq!(
        (scale("min"), scale("inch"), scale("ink")),
        (Some(60.0), Some(0.0254), None)
    );
}

#[test]
fn no_mutated_file_panics_and_errors_name_their_place() {
    let mut random = Random(4);
    let pieces = [
        "(",
        ")",
        "-",
        "^",
        " ",
        "\n",
        "if ",
        "1e308",
        "..",
        "[",
        "state ",
        "d/dt ",
        "=",
        "0",
        "\u{e9}",
        "\"",
        "#",
        "steps 1000",
    ];
    for round in 0..20_000 {
        let (origin, text) = LIBRARY[round % LIBRARY.len()];
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..1 + random.below(4) {
            let at = random.below(letters.len());
            match random.below(3) {
                0 => drop(letters.drain(at..(at + 1 + random.below(20)).min(letters.len()))),
                1 => letters
                    .splice(at..at, pieces[random.below(pieces.len())].chars())
                    .for_each(drop),
                _ => letters[at] = (b' ' + random.below(95) as u8) as char,
            }
        }
        let mutated: String = letters.into_iter().collect();
        match System::parse(&mutated, origin) {
            Err(error) => assert!(
                error.to_string().starts_with(&format!("{origin}: line ")),
                "{error}"
            ),
            Ok(system) => {
                let parameters = system.default_parameters();
                let mut state = system.start(&parameters, || 0.5);
                system.step(
                    &parameters,
                    &mut state,
                    &vec![0.0; system.inputs().len()],
                    &vec![0.0; system.noises().len()],
                );
            }
        }
    }
}

#[test]
fn deep_and_long_files_are_refused() {
    let with = |expression: &str| {
        [
            LINES.join("\n"),
            format!("reward = {expression}"),
            "observe x: m = x".to_owned(),
        ]
        .join("\n")
    };
    let deep = System::parse(
        &with(&format!("{}1{}", "(".repeat(5000), ")".repeat(5000))),
        "deep",
    )
    .expect_err("too deep")
    .to_string();
    assert!(deep.contains("nested more than 100 deep"), "{deep}");
    let long = System::parse(&with(&"1 + ".repeat(400_000)), "long")
        .expect_err("too long")
        .to_string();
    assert!(long.contains("at most 1048576"), "{long}");
    assert!(System::parse(&with(&format!("{}1", "1 + ".repeat(1000))), "wide").is_ok());
}
