//! Random expressions: their text, read and computed, against the same tree computed directly.

use tectum_equations::System;

use super::Random;

/// A plain expression over a state, an input and a parameter.
enum Tree {
    Number(f64),
    Name(usize),
    Call(&'static str, Box<Tree>),
    Pair(&'static str, Box<Tree>, Box<Tree>),
    Power(Box<Tree>, i32),
    If(&'static str, [Box<Tree>; 4]),
}

const NAMES: [&str; 3] = ["x", "u", "p"];

fn tree(random: &mut Random, depth: usize) -> Tree {
    let part = |random: &mut Random| Box::new(tree(random, depth - 1));
    match if depth == 0 {
        random.below(2)
    } else {
        random.below(7)
    } {
        0 => Tree::Number((random.within(-3.0, 3.0) * 100.0).round() / 100.0),
        1 => Tree::Name(random.below(3)),
        2 => Tree::Call(
            ["sin", "cos", "tanh", "abs", "atan", "-", "sign"][random.below(7)],
            part(random),
        ),
        3 | 4 => Tree::Pair(
            ["+", "-", "*", "/", "min", "max", "atan2"][random.below(7)],
            part(random),
            part(random),
        ),
        5 => Tree::Power(part(random), 1 + random.below(3) as i32),
        _ => Tree::If(
            ["<", "<=", ">", ">="][random.below(4)],
            [part(random), part(random), part(random), part(random)],
        ),
    }
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Number(number) => format!("({number})"),
            Tree::Name(which) => NAMES[*which].to_owned(),
            Tree::Call("-", a) => format!("(-{})", a.text()),
            Tree::Call(name, a) => format!("{name}({})", a.text()),
            Tree::Pair(name @ ("+" | "-" | "*" | "/"), a, b) => {
                format!("({} {name} {})", a.text(), b.text())
            }
            Tree::Pair(name, a, b) => format!("{name}({}, {})", a.text(), b.text()),
            Tree::Power(a, exponent) => format!("({})^{exponent}", a.text()),
            Tree::If(op, [a, b, c, d]) => format!(
                "(if {} {op} {} then {} else {})",
                a.text(),
                b.text(),
                c.text(),
                d.text()
            ),
        }
    }

    fn value(&self, names: [f64; 3]) -> f64 {
        match self {
            Tree::Number(number) => *number,
            Tree::Name(which) => names[*which],
            Tree::Call(name, a) => {
                let a = a.value(names);
                match *name {
                    "sin" => a.sin(),
                    "cos" => a.cos(),
                    "tanh" => a.tanh(),
                    "abs" => a.abs(),
                    "atan" => a.atan(),
                    "-" => -a,
                    _ if a == 0.0 || a.is_nan() => 0.0,
                    _ => a.signum(),
                }
            }
            Tree::Pair(name, a, b) => {
                let (a, b) = (a.value(names), b.value(names));
                match *name {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    "min" => a.min(b),
                    "max" => a.max(b),
                    _ => a.atan2(b),
                }
            }
            Tree::Power(a, exponent) => a.value(names).powi(*exponent),
            Tree::If(op, [a, b, c, d]) => {
                let (a, b) = (a.value(names), b.value(names));
                let holds = match *op {
                    "<" => a < b,
                    "<=" => a <= b,
                    ">" => a > b,
                    _ => a >= b,
                };
                if holds {
                    c.value(names)
                } else {
                    d.value(names)
                }
            }
        }
    }
}

/// A system of one state, one input and one parameter, with random expressions as its rate and
/// reward.
fn random_trees(random: &mut Random) -> ([Tree; 2], String) {
    let trees = [tree(random, 5), tree(random, 5)];
    let [rate, reward] = [&trees[0], &trees[1]].map(Tree::text);
    let text = format!(
        "body random\nperiod 100 ms\nintegrate euler\nparameter p = 0.7\nstate x: 1 start 0.3\ninput u: 1 in -2 .. 2\n\
         d/dt x = ({rate}) / 1 [s]\nreward = {reward}\nobserve x: 1 = x"
    );
    (trees, text)
}

/// Its text, and the system.
pub fn random_system(random: &mut Random) -> (String, System) {
    let (_, text) = random_trees(random);
    let system = System::parse(&text, "random").unwrap_or_else(|error| panic!("{error}\n{text}"));
    (text, system)
}

#[test]
fn a_thousand_random_systems_compute_what_they_say() {
    let mut random = Random(5);
    for round in 0..1000 {
        let (trees, text) = random_trees(&mut random);
        let system =
            System::parse(&text, "random").unwrap_or_else(|error| panic!("{error}\n{text}"));
        for _ in 0..5 {
            let (x, u) = (random.within(-2.0, 2.0), random.within(-2.0, 2.0));
            let mut state = vec![x];
            let step = system.step(&[0.7], &mut state, &[u], &[]);
            let expected = x + 0.1 * trees[0].value([x, u, 0.7]);
            let reward = trees[1].value([expected, u, 0.7]);
            let is_same =
                |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || a == b;
            assert!(
                is_same(state[0], expected) && is_same(step.reward, reward),
                "round {round}: {state:?} {step:?}, expected {expected} {reward}\n{text}"
            );
        }
    }
}
