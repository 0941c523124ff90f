//! Recognised programs: maps, reductions, trees and products in forms that users write, recorded in
//! their recognised shape.

use std::rc::Rc;

use tectum::{DType, ErrorKind};
use tectum_programs::{
    Bounds, Checked, Fused, LaunchConfig, Map, Outcome, Program, ProgramView, Recognition, Setting,
    Shape, Stage, fuse,
};

use super::memory::{Seen, Space, Word};
use super::operation::{Operation, Step, all, reads, sum, writes};
use super::products::dot;
use super::world::{Verdict, World, caught, judged};

/// The computation of a program, and its buffers.
struct Form {
    text: String,
    launch: LaunchConfig,
    /// The shape that it may be recognised as; "general" if it must run unchanged.
    shapes: &'static [&'static str],
    reassociate: bool,
    /// Elements of the buffers that are read.
    reads: Vec<usize>,
    writes: usize,
    meaning: Meaning,
}

/// The step of a form over its buffers.
type Meaning = Rc<dyn Fn(&Space<'_>, &[Seen], &Seen)>;

impl World {
    /// A program of a known form: recognised, and recorded in a plan of the world over own and
    /// foreign views.
    pub fn recognized_program(&mut self) -> Verdict {
        if self.builders.is_empty() {
            return Ok(());
        }
        if self.chance(6) {
            return self.fused_maps();
        }
        let plan = self.below(self.builders.len());
        let form = match self.random.below(4) {
            0 => {
                let n = 2 + self.below(30);
                map(self, n)
            }
            1 => reduction(self),
            2 => tree(self),
            _ => matrices(self),
        };
        let program = Program::parse(&form.text)
            .and_then(|program| program.check())
            .map_err(|error| format!("{error}\n{}", form.text))?;
        self.recognize(&program, &form)?;
        let inputs: Vec<Seen> = form
            .reads
            .iter()
            .map(|len| self.source(plan, DType::F32, *len))
            .collect();
        let y = self.target(plan, DType::F32, form.writes);
        let lengths = inputs
            .iter()
            .zip(&form.reads)
            .all(|(seen, len)| seen.len == *len)
            && y.len == form.writes;
        let is_whole = lengths
            && inputs
                .iter()
                .chain([&y])
                .all(|seen| seen.dtype.bytes() == 4);
        if !is_whole || self.chance(30) {
            return self.misfit(plan, &program, &form, &[&inputs[..], &[y]].concat());
        }
        self.recorded(plan, operation(program, form, inputs, y))
    }

    /// Two maps fused: memory as after both maps in sequence.
    pub fn fused_maps(&mut self) -> Verdict {
        let n = 2 + self.below(30);
        let other = if self.chance(6) { n + 1 } else { n };
        let [first, second] = [map(self, n), map(self, other)];
        let mut maps: Vec<Map> = Vec::new();
        for form in [&first, &second] {
            let program = Program::parse(&form.text)
                .and_then(|program| program.check())
                .map_err(|error| error.to_string())?;
            let sizes: Vec<u64> = form
                .reads
                .iter()
                .chain([&form.writes])
                .map(|len| 4 * *len as u64)
                .collect();
            let found = program
                .recognize(&Setting::new(&form.launch, &sizes))
                .map_err(|error| error.to_string())?;
            let Shape::Map(map) = found.shape() else {
                return Err(format!("is {}", found.shape()));
            };
            maps.push(map.clone());
        }
        // For a, b, s and y; the second uses the result of the first as its a, and occasionally as
        // the value that is the same for all.
        let is_shared = self.chance(6);
        let after = if is_shared {
            [0, 1, 3, 4]
        } else {
            [3, 1, 2, 4]
        };
        let dropped: &[usize] = if self.chance(2) { &[3] } else { &[] };
        self.note(format!(
            "fuse maps over {} and {} elements, {after:?} dropping {dropped:?}",
            first.writes, second.writes
        ));
        let stages = [
            Stage {
                map: &maps[0],
                memories: &[0, 1, 2, 3],
            },
            Stage {
                map: &maps[1],
                memories: &after,
            },
        ];
        let (fused, nothing) = caught(|| (fuse(&stages, dropped), fuse(&[], &[]).is_err()))
            .map_err(|panic| format!("panicked: {panic}"))?;
        let fits = first.writes == second.writes && !is_shared;
        match fused {
            Ok(fused) if fits && nothing => self.run_fused(&maps, after, &fused),
            Err(_) if !fits && nothing => Ok(()),
            fused => Err(format!("gives {fused:?}")),
        }
    }

    fn run_fused(&mut self, maps: &[Map], after: [usize; 4], fused: &Fused) -> Verdict {
        let n = maps[0].elements() as usize;
        let mut memories: Vec<Vec<u8>> = [n, n, n.max(2), n, n]
            .map(|len| {
                self.data(DType::F32, len)
                    .iter()
                    .flat_map(|word| word.to_le_bytes())
                    .collect()
            })
            .to_vec();
        memories[2].truncate(8);
        let mut apart = memories.clone();
        for (map, places) in [(&maps[0], &[0, 1, 2, 3][..]), (&maps[1], &after[..])] {
            evaluated(map, places, &mut apart)?;
        }
        evaluated(&fused.map, &fused.memories, &mut memories)?;
        if fused.map.elements() != n as u64
            || memories[4] != apart[4]
            || (fused.memories.contains(&3) && memories[3] != apart[3])
        {
            return Err(format!(
                "gives other bits than the maps: {}",
                fused.map.program().program()
            ));
        }
        Ok(())
    }

    /// Its shape must be found, but nothing that reorders sums if sums keep their order.
    fn recognize(&mut self, program: &Checked, form: &Form) -> Verdict {
        let sizes: Vec<u64> = form
            .reads
            .iter()
            .chain([&form.writes])
            .map(|len| 4 * *len as u64)
            .collect();
        let setting = Setting {
            reassociate: form.reassociate,
            ..Setting::new(&form.launch, &sizes)
        };
        let found = self
            .expect(
                format_args!("recognize {:?}\n{}", form.launch, form.text),
                None,
                || program.recognize(&setting),
            )?
            .ok_or("recognized")?;
        let name = found.shape().name();
        if !form.shapes.contains(&name) || (name == "general") != found.obligations().is_empty() {
            return Err(format!(
                "is {}, not {:?}: {:?}",
                found.shape(),
                form.shapes,
                found.refusals()
            ));
        }
        // A launch without its buffers, or one element short.
        let short: Vec<u64> = if self.chance(2) {
            sizes[1..].to_vec()
        } else {
            sizes.iter().map(|size| size - 1).collect()
        };
        let result = caught(|| {
            program.recognize(&Setting {
                sizes: &short,
                ..setting
            })
        })
        .map_err(|panic| format!("panicked: {panic}"))?;
        judged(result.map(|_| ()), Some(ErrorKind::Invalid)).map(|_| ())
    }

    /// Views that do not fit, or wrong byte counts: refused, or accepted as a part of them. The
    /// plan is abandoned.
    fn misfit(&mut self, plan: usize, program: &Checked, form: &Form, views: &[Seen]) -> Verdict {
        let mut views: Vec<ProgramView> = views.iter().map(|seen| seen.view.into()).collect();
        let place = self.below(views.len());
        views[place].bytes = if self.chance(2) {
            self.extreme() as u64
        } else {
            views[place].bytes
        };
        let is_short = self.chance(6);
        let views = if is_short { &views[1..] } else { &views[..] };
        self.note(format!(
            "plan{}: program_recognized over {views:?}",
            self.builders[plan].model.id
        ));
        let mut builder = self.builders.swap_remove(plan).builder;
        let how = Recognition {
            reassociate: form.reassociate,
            bounds: Bounds::Checked,
        };
        let result = caught(|| {
            program
                .record_recognized(&mut builder, &form.launch, views, how)
                .map(|_| ())
        });
        match result.map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => {
                Err(format!("{:?}: {error}", error.kind()))
            }
            Ok(()) if is_short => Err("accepted without one of its buffers".to_owned()),
            _ => Ok(()),
        }
    }
}

fn operation(program: Checked, form: Form, inputs: Vec<Seen>, y: Seen) -> Operation {
    let Form {
        text,
        launch,
        reassociate,
        meaning,
        ..
    } = form;
    let views: Vec<ProgramView> = inputs
        .iter()
        .chain([&y])
        .map(|seen| seen.view.into())
        .collect();
    let bound = inputs
        .iter()
        .map(|seen| reads(seen.as_words(), DType::U32))
        .chain([writes(y.as_words(), DType::U32)])
        .collect();
    let shown: Vec<String> = inputs.iter().map(Seen::to_string).collect();
    let given = inputs.iter().copied().chain([y]).collect();
    let float = |seen: &Seen| Seen {
        dtype: DType::F32,
        ..*seen
    };
    let (inputs, y): (Vec<Seen>, Seen) = (inputs.iter().map(float).collect(), float(&y));
    let step: Step = Rc::new(move |space| meaning(space, &inputs, &y));
    Operation {
        text: format!(
            "program_recognized {shown:?} {y} {launch:?} reassociate {reassociate}\n{text}"
        ),
        refused: None,
        launches: vec![bound],
        given,
        record: Box::new(move |plan| {
            let how = Recognition {
                reassociate,
                bounds: Bounds::Checked,
            };
            program
                .record_recognized(plan, &launch, &views, how)
                .map(|_| ())
        }),
        step,
    }
}

/// `y[i] = a[i]·b[i] + s[1]`, each operation rounded separately, in one of its known forms.
fn map(world: &mut World, n: usize) -> Form {
    let element = |at: &str| {
        format!(
            "ldg.f32 r10, [a + {at}]\nldg.f32 r11, [b + {at}]\nmul.f32 r12, r10, r11\nldg.f32 r13, [s + 4]\nadd.f32 r12, r12, r13\nstg.f32 [y + {at}], r12\n"
        )
    };
    let one = LaunchConfig::linear(1, 1);
    let start = "mov_imm.u64 r4, 4\nmov_imm.u64 r5, 0\n";
    let (code, launch) = match world.random.below(5) {
        0 => {
            let own = "ldg.f32 r0, [a]\nldg.f32 r1, [b]\nmul.f32 r2, r0, r1\nldg.f32 r3, [s + 4]\nadd.f32 r2, r2, r3\nstg.f32 [y], r2\n";
            (own.to_owned(), LaunchConfig::linear(n as u32, 64))
        }
        1 => ((0..n).map(|i| element(&(4 * i).to_string())).collect(), one),
        2 => (
            (0..n)
                .rev()
                .map(|i| element(&(4 * i).to_string()))
                .collect(),
            one,
        ),
        3 => (
            format!(
                "{start}mov_imm.u32 r0, {}\n@l:\n{}add.u64 r5, r5, r4\nloop r0, @l\n",
                n - 1,
                element("r5")
            ),
            one,
        ),
        _ => {
            let lanes = format!(
                "mov_imm.u64 r4, 4\nmov_imm.u64 r6, {n}\nset.ge.u64 p0, r255, r6\nbra @end, p0\nmul.u64 r5, r255, r4\n{}@end:\n",
                element("r5")
            );
            (lanes, LaunchConfig::linear(n as u32, 8))
        }
    };
    Form {
        text: format!(
            "buffer a: f32 read\nbuffer b: f32 read\nbuffer s: f32 read\nbuffer y: f32 write\n{code}"
        ),
        launch,
        shapes: &["map"],
        reassociate: world.chance(2),
        reads: vec![n, n, 2],
        writes: n,
        meaning: Rc::new(|space, inputs, y| {
            let [a, b, s] = [0, 1, 2].map(|place| space.numbers(&inputs[place]));
            let one = |place: usize| {
                all(&[a[place], b[place], s[1]]).map(|known| sum(&[known[0] * known[1], known[2]]))
            };
            space.put_numbers(y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// The sum, minimum or maximum of each row or column, one lane each.
fn reduction(world: &mut World) -> Form {
    let [rows, cols] = [1 + world.below(7), 2 + world.below(30)];
    let (op, neutral) = world
        .random
        .pick(&[("add", "0.0"), ("min", "inf"), ("max", "-inf")]);
    let (is_columns, reassociate) = (world.chance(2), world.chance(2));
    let (scale, step) = if is_columns {
        (4, 4 * rows)
    } else {
        (4 * cols, 4)
    };
    let text = format!(
        "buffer x: f32 read\nbuffer y: f32 write\nmov_imm.f32 r0, {neutral}\nmov_imm.u64 r1, {scale}\nmul.u64 r2, r255, r1\nmov_imm.u64 r3, {step}\n\
         mov_imm.u32 r4, {}\n@l:\nldg.f32 r5, [x + r2]\n{op}.f32 r0, r0, r5\nadd.u64 r2, r2, r3\nloop r4, @l\nstg.f32 [y], r0",
        cols - 1
    );
    Form {
        text,
        launch: LaunchConfig::linear(rows as u32, rows as u32),
        // Sums of floats keep their order unless reordering is allowed; the core has no other
        // reductions of columns.
        shapes: if if op == "add" {
            reassociate
        } else {
            !is_columns || rows == 1
        } {
            &["reduction"]
        } else {
            &["general"]
        },
        reassociate,
        reads: vec![rows * cols],
        writes: rows,
        meaning: Rc::new(move |space, inputs, y| {
            let x = space.numbers(&inputs[0]);
            let one = |row: usize| {
                let terms = all(&(0..cols)
                    .map(|i| {
                        x[if is_columns {
                            i * rows + row
                        } else {
                            row * cols + i
                        }]
                    })
                    .collect::<Vec<_>>())?;
                Some(match op {
                    "min" => (terms.iter().copied().fold(f64::INFINITY, f64::min), 0.0),
                    "max" => (terms.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0),
                    _ => sum(&terms),
                })
            };
            space.put_numbers(y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// One lane's sum of terms `3·x[i] + w[i]`, modulo 2³².
fn tree(world: &mut World) -> Form {
    let n = 2 + world.below(60);
    let text = format!(
        "buffer x: u32 read\nbuffer w: u32 read\nbuffer y: u32 write\nmov_imm.u32 r0, 0\nmov_imm.u32 r7, 3\nmov_imm.u64 r4, 4\nmov_imm.u64 r5, 0\nmov_imm.u32 r9, {}\n@l:\n\
         ldg.u32 r1, [x + r5]\nldg.u32 r2, [w + r5]\nmul.u32 r1, r1, r7\nadd.u32 r1, r1, r2\nadd.u32 r0, r0, r1\nadd.u64 r5, r5, r4\nloop r9, @l\nstg.u32 [y + 0], r0",
        n - 1
    );
    Form {
        text,
        launch: LaunchConfig::linear(1, 1),
        shapes: &["tree"],
        reassociate: world.chance(2),
        reads: vec![n, n],
        writes: 1,
        meaning: Rc::new(|space, inputs, y| {
            let [x, w] = [0, 1].map(|place| space.integers(&inputs[place]));
            let sum = x.iter().zip(&w).try_fold(0u32, |sum, (x, w)| {
                Some(sum.wrapping_add((*x)?.wrapping_mul(3)).wrapping_add((*w)?))
            });
            space.put(y, &[sum.map_or(Word::Unknown, Word::Exact)]);
        }),
    }
}

/// A product of matrices, or of a matrix and a vector, one lane per element.
fn matrices(world: &mut World) -> Form {
    let [m, n, k] = [2 + world.below(7), 1 + world.below(7), 2 + world.below(12)];
    let flips = [world.chance(2), world.chance(2)];
    let chain = world.random.pick(&[
        "fma.f32 r0, r10, r11, r0",
        "mad.f32 r0, r11, r10, r0",
        "mul.f32 r12, r10, r11\nadd.f32 r0, r0, r12",
    ]);
    let (a_scale, a_step) = if flips[0] { (4, 4 * m) } else { (4 * k, 4) };
    let (b_scale, b_step) = if flips[1] { (4 * k, 4) } else { (4, 4 * n) };
    let text = format!(
        "buffer a: f32 read\nbuffer b: f32 read\nbuffer y: f32 write\nmov_imm.u64 r1, {n}\ndiv.u64 r2, r255, r1\nmul.u64 r3, r2, r1\nsub.u64 r3, r255, r3\nmov_imm.u64 r4, {a_scale}\n\
         mul.u64 r5, r2, r4\nmov_imm.u64 r4, {b_scale}\nmul.u64 r6, r3, r4\nmov_imm.u64 r7, {a_step}\nmov_imm.u64 r8, {b_step}\nmov_imm.f32 r0, 0.0\nmov_imm.u32 r9, {}\n@l:\n\
         ldg.f32 r10, [a + r5]\nldg.f32 r11, [b + r6]\n{chain}\nadd.u64 r5, r5, r7\nadd.u64 r6, r6, r8\nloop r9, @l\nstg.f32 [y], r0",
        k - 1
    );
    let reassociate = world.chance(2);
    Form {
        text,
        launch: LaunchConfig::linear((m * n) as u32, (m * n) as u32),
        shapes: if reassociate {
            &["gemm", "matvec"]
        } else {
            &["general"]
        },
        reassociate,
        reads: vec![m * k, k * n],
        writes: m * n,
        meaning: Rc::new(move |space, inputs, y| {
            let [a, b] = [0, 1].map(|place| space.numbers(&inputs[place]));
            let one = |place: usize| {
                let (row, col) = (place / n, place % n);
                let (left, right) = (
                    |i| if flips[0] { i * m + row } else { row * k + i },
                    |i| if flips[1] { col * k + i } else { i * n + col },
                );
                dot((0..k).map(|i| Some((a[left(i)], b[right(i)]))))
            };
            space.put_numbers(y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// Runs a map over memories by the reference interpreter.
fn evaluated(map: &Map, places: &[usize], memories: &mut [Vec<u8>]) -> Verdict {
    let mut buffers: Vec<Vec<u8>> = places
        .iter()
        .map(|place| memories[*place].clone())
        .collect();
    let outcome = map
        .program()
        .evaluate(map.launch(), &mut buffers, 1_000_000)
        .map_err(|error| error.to_string())?;
    let declared = map.program().program().buffers();
    places
        .iter()
        .zip(buffers)
        .zip(declared)
        .filter(|(_, buffer)| buffer.access.writes())
        .for_each(|((place, bytes), _)| memories[*place] = bytes);
    if outcome == Outcome::Finished {
        Ok(())
    } else {
        Err(format!("{outcome:?}"))
    }
}
