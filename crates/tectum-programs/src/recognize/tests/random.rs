//! Random programs: the recognised form gives the same results as the program.

use super::{ONE, checked, planned, reference};
use crate::generate::{Generated, Random, generate};
use crate::tests::differ;
use crate::{LaunchConfig, Shape};

/// Programs of every feature of the generator; most are general, and none may be recognised as a
/// wrong shape.
#[test]
fn generated_programs_are_what_they_are_recognised_as() {
    let mut shapes = std::collections::BTreeMap::new();
    for seed in 0..300 {
        let generated = generate(seed);
        let Generated {
            program,
            launch,
            buffers,
        } = &generated;
        if program
            .lower_or_native(launch, crate::Bounds::Checked)
            .is_err()
        {
            continue;
        }
        let (shape, after) = planned(program, launch, buffers, true);
        *shapes.entry(shape.name()).or_insert(0) += 1;
        for ((declared, found), expected) in program
            .program()
            .buffers()
            .iter()
            .zip(&after)
            .zip(&reference(program, launch, buffers))
        {
            let tolerance = if generated.has_functions() {
                generated.tolerance(declared.ty)
            } else {
                0.0
            };
            let difference = differ(declared.ty, found, expected, tolerance);
            assert!(
                difference.is_none(),
                "seed {seed}, {shape}: {}\n{}",
                difference.unwrap_or_default(),
                program.program()
            );
        }
    }
    println!("generated programs: {shapes:?}");
}

/// A random element: its loads at an offset, its operations, its store.
struct Element {
    random: Random,
    ty: &'static str,
    lines: Vec<String>,
}

impl Element {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let ty = random.pick(&["f32", "i32", "u32", "i64", "u8", "f64", "u16"]);
        let mut element = Self {
            random,
            ty,
            lines: Vec::new(),
        };
        element.write();
        element
    }

    /// Lines with AT for the element's offset.
    fn write(&mut self) {
        let ty = self.ty;
        for register in 10..12 + self.random.below(3) {
            let at = self
                .random
                .pick(&["a + AT", "b + AT", "s + 8", "s + 0", "y + AT"]);
            self.lines.push(format!("ldg.{ty} r{register}, [{at}]"));
        }
        self.lines
            .push(format!("mov_imm.{ty} r14, {}", self.random.below(100)));
        self.lines
            .push(format!("mov.{ty} r13, r11\nmov.{ty} r12, r10"));
        for _ in 0..2 + self.random.below(8) {
            let [a, b, d] = [(); 3].map(|()| 10 + self.random.below(5));
            let line = match self.random.below(4) {
                0 => format!("neg.{ty} r{d}, r{a}"),
                1 => format!("set.lt.{ty} p1, r{a}, r{b}\nsel.{ty} r{d}, p1, r{b}, r{d}"),
                _ => format!(
                    "{}.{ty} r{d}, r{a}, r{b}",
                    self.random.pick(&["add", "sub", "mul", "min", "max"])
                ),
            };
            self.lines.push(line);
        }
        let stored = 10 + self.random.below(5);
        self.lines.push(format!("stg.{ty} [y + AT], r{stored}"));
        if self.random.one_in(3) {
            // Seen again after it was stored.
            self.lines
                .push(format!("ldg.{ty} r10, [y + AT]\nstg.{ty} [z + AT], r10"));
        } else {
            self.lines
                .push(format!("stg.{ty} [z + AT], r{}", 10 + self.random.below(5)));
        }
    }

    fn at(&self, at: &str) -> String {
        self.lines
            .iter()
            .map(|line| format!("{}\n", line.replace("AT", at)))
            .collect()
    }

    fn head(&self) -> String {
        let ty = self.ty;
        format!(
            "buffer a: {ty} read\nbuffer b: {ty} read\nbuffer s: {ty} read\nbuffer y: {ty} read_write\nbuffer z: {ty} write\n"
        )
    }

    /// The program as a run, a loop, a loop of two per iteration or a lane per element; its launch.
    fn program(&mut self, n: u64) -> (String, LaunchConfig) {
        let width = crate::Type::from_name(self.ty).map_or(1, |ty| ty.bytes());
        let start = format!("mov_imm.u64 r4, {width}\nmov_imm.u64 r5, 0\n");
        let (text, launch) = match self.random.below(4) {
            0 => (
                (0..n).map(|i| self.at(&(width * i).to_string())).collect(),
                ONE,
            ),
            1 => (
                format!(
                    "{start}mov_imm.u32 r0, {}\n@l:\n{}add.u64 r5, r5, r4\nloop r0, @l\n",
                    n - 1,
                    self.at("r5")
                ),
                ONE,
            ),
            2 if n.is_multiple_of(2) => (
                format!(
                    "{start}mov_imm.u32 r0, {}\n@l:\n{}add.u64 r5, r5, r4\n{}add.u64 r5, r5, r4\nloop r0, @l\n",
                    n / 2 - 1,
                    self.at("r5"),
                    self.at("r5")
                ),
                ONE,
            ),
            _ => (
                format!(
                    "{start}mul.u64 r5, r255, r4\nmov_imm.u64 r6, {n}\nset.ge.u64 p0, r255, r6\nbra @end, p0\n{}@end:\n",
                    self.at("r5")
                ),
                LaunchConfig::linear(n as u32, 8),
            ),
        };
        (format!("{}{text}", self.head()), launch)
    }

    fn buffers(&mut self, n: u64) -> Vec<Vec<u8>> {
        let width = crate::Type::from_name(self.ty).map_or(1, |ty| ty.bytes()) as usize;
        // Quarters and small integers: every operation is exact, and no float is NaN.
        let value = |random: &mut Random| match self.ty {
            "f32" => ((random.below(64) as f32 - 32.0) / 4.0)
                .to_le_bytes()
                .to_vec(),
            "f64" => ((random.below(64) as f64 - 32.0) / 4.0)
                .to_le_bytes()
                .to_vec(),
            _ => random.bits().to_le_bytes()[..width].to_vec(),
        };
        let mut bytes = |count: u64| {
            (0..count)
                .flat_map(|_| value(&mut self.random))
                .collect::<Vec<u8>>()
        };
        vec![bytes(n), bytes(n), bytes(16), bytes(n), bytes(n)]
    }
}

#[test]
fn random_elements_in_every_form_are_maps() {
    for seed in 0..400 {
        let mut element = Element::new(seed);
        let n = element.random.pick(&[1, 2, 3, 8, 40]);
        let (text, launch) = element.program(n);
        let (program, buffers) = (checked(&text), element.buffers(n));
        let (shape, after) = planned(&program, &launch, &buffers, false);
        assert!(
            matches!(&shape, Shape::Map(map) if map.elements() == n),
            "seed {seed}: {shape}\n{text}"
        );
        assert_eq!(
            after,
            reference(&program, &launch, &buffers),
            "seed {seed}\n{text}"
        );
    }
}
