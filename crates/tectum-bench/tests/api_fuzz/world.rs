//! All live objects of a sequence of calls, how arguments are drawn from them, and the list of
//! calls for a replay.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use tectum::{DType, Device, ErrorKind, Event, Stream};
use tectum_programs::generate::Random;

use super::buffers::Held;
use super::graphs::Built;
use super::memory::Seen;
use super::plans::{Building, Kind, Planned, Running};
use super::streams::Queued;

/// A violation by a call: the text says which call and how.
pub type Fault = String;
pub type Verdict = Result<(), Fault>;

/// Maximum live bytes on a device: larger requests are errors.
pub const LIVE_BYTES: u64 = 1 << 30;

/// Sizes at limits: zero, alignment, 32 bits, bytes of an address, and products of them that wrap.
const EXTREMES: [usize; 13] = [
    0,
    1,
    63,
    65,
    u32::MAX as usize,
    1 << 32,
    (1 << 32) + 64,
    1 << 60,
    1 << 61,
    1 << 62,
    (1 << 62) + 64,
    isize::MAX as usize,
    usize::MAX,
];

pub struct World {
    pub random: Random,
    /// The device under test, and one that executes nothing and belongs only to this sequence.
    pub devices: [Device; 2],
    pub builders: Vec<Building>,
    pub plans: Vec<Planned>,
    pub runs: Vec<Running>,
    pub buffers: Vec<Held>,
    pub streams: Vec<Stream>,
    pub events: Vec<Event>,
    pub queued: Vec<Queued>,
    pub graphs: Vec<Built>,
    /// Views of every owner.
    pub strangers: Vec<Seen>,
    pub next_plan: u64,
    pub calls: u64,
    journal: Vec<String>,
    shows: bool,
}

impl World {
    pub fn new(seed: u64, device: &Device, shows: bool) -> Self {
        Self {
            random: Random::new(seed),
            devices: [device.clone(), Device::null_with_capacity(LIVE_BYTES)],
            builders: Vec::new(),
            plans: Vec::new(),
            runs: Vec::new(),
            buffers: Vec::new(),
            streams: Vec::new(),
            events: Vec::new(),
            queued: Vec::new(),
            graphs: Vec::new(),
            strangers: Vec::new(),
            next_plan: 0,
            calls: 0,
            journal: Vec::new(),
            shows,
        }
    }

    /// The calls so far, one a line.
    pub fn journal(&self) -> String {
        self.journal.join("\n")
    }

    /// Logs a call, before it is made.
    pub fn note(&mut self, call: impl Display) {
        self.calls += 1;
        if self.shows {
            eprintln!("{call}");
        }
        self.journal.push(call.to_string());
    }

    /// Makes a call that must not panic.
    pub fn call<R>(&mut self, text: impl Display, call: impl FnOnce() -> R) -> Result<R, Fault> {
        self.note(text);
        caught(call).map_err(|panic| format!("panicked: {panic}"))
    }

    /// Makes a call that must panic, with a text that contains `part`.
    pub fn must_panic<R>(
        &mut self,
        text: impl Display,
        part: &str,
        call: impl FnOnce() -> R,
    ) -> Verdict {
        self.note(text);
        match caught(call) {
            Ok(_) => Err(format!("accepted; a panic with {part:?} is documented")),
            Err(panic) if panic.contains(part) => Ok(()),
            Err(panic) => Err(format!("panicked with {panic:?}; {part:?} is documented")),
        }
    }

    /// Makes a call that must succeed, or fail with the given kind; returns the value of a success.
    pub fn expect<R>(
        &mut self,
        text: impl Display,
        wanted: Option<ErrorKind>,
        call: impl FnOnce() -> tectum::Result<R>,
    ) -> Result<Option<R>, Fault> {
        judged(self.call(text, call)?, wanted)
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.random.one_in(one_in)
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.random.below(count.max(1) as u64) as usize
    }

    pub fn dtype(&mut self) -> DType {
        self.random.pick(&[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::U32,
            DType::I32,
            DType::F64,
        ])
    }

    pub fn float(&mut self) -> DType {
        self.random.pick(&[DType::F32, DType::F32, DType::F64])
    }

    pub fn extreme(&mut self) -> usize {
        self.random.pick(&EXTREMES)
    }

    /// A length: small, of whole alignments, occasionally zero.
    pub fn size(&mut self) -> usize {
        match self.random.below(20) {
            0 => 0,
            1 => 64 * (1 + self.below(4)),
            2 => 1 + self.below(600),
            _ => 1 + self.below(24),
        }
    }

    /// A length that occasionally exceeds the segments of reductions and scans.
    pub fn long_size(&mut self) -> usize {
        if self.chance(25) {
            1 + self.below(10_000)
        } else {
            self.size()
        }
    }

    /// A batch of matrices of the sizes that are not given, and the elements of all.
    pub fn sizes(&mut self, given: [usize; 3]) -> ([usize; 3], usize) {
        let sizes = given.map(|size| if size == 0 { 1 + self.below(20) } else { size });
        (sizes, sizes.iter().product())
    }

    /// Replaces one size by an extreme one in a twentieth of all cases, or sometimes by a near one.
    pub fn distort(&mut self, sizes: &mut [usize]) {
        let place = self.below(sizes.len());
        match self.random.below(40) {
            0 | 1 => sizes[place] = self.extreme(),
            2 => sizes[place] = sizes[place].saturating_add(1),
            3 => {
                sizes[place] = self.random.pick(&[1 << 32, 1 << 62, usize::MAX]);
                let other = self.below(sizes.len());
                sizes[other] = self.random.pick(&[1 << 32, 4, 1 << 31]);
            }
            _ => {}
        }
    }

    /// A view that a plan can read, or occasionally another.
    pub fn source(&mut self, plan: usize, dtype: DType, len: usize) -> Seen {
        self.drawn(
            plan,
            dtype,
            len,
            &[Kind::Input, Kind::Input, Kind::State, Kind::Constant],
            |model, seen| model.is_readable(seen),
        )
    }

    /// A view that a plan can write, or occasionally another.
    pub fn target(&mut self, plan: usize, dtype: DType, len: usize) -> Seen {
        self.drawn(
            plan,
            dtype,
            len,
            &[Kind::Output, Kind::Output, Kind::State, Kind::Temp],
            |model, seen| model.is_writable(seen),
        )
    }

    /// A view that a plan can change in place, or occasionally another.
    pub fn changed(&mut self, plan: usize, dtype: DType, len: usize) -> Seen {
        self.drawn(plan, dtype, len, &[Kind::State], |model, seen| {
            model.is_readable(seen) && model.is_writable(seen)
        })
    }

    fn drawn(
        &mut self,
        plan: usize,
        dtype: DType,
        len: usize,
        kinds: &[Kind],
        fits: fn(&super::plans::PlanModel, &Seen) -> bool,
    ) -> Seen {
        match self.random.below(40) {
            0 | 1 if !self.strangers.is_empty() => {
                let place = self.below(self.strangers.len());
                return self.strangers[place];
            }
            2 if !self.builders[plan].model.views.is_empty() => {
                let place = self.below(self.builders[plan].model.views.len());
                return self.builders[plan].model.views[place];
            }
            3 => return self.fresh(plan, Kind::State, dtype, len.saturating_add(1)),
            _ => {}
        }
        let model = &self.builders[plan].model;
        let known: Vec<Seen> = model
            .views
            .iter()
            .filter(|seen| seen.dtype == dtype && seen.len == len && fits(model, seen))
            .copied()
            .collect();
        if !known.is_empty() && (model.slots.len() > 24 || !self.chance(3)) {
            let place = self.below(known.len());
            return known[place];
        }
        let kind = self.random.pick(kinds);
        if kind != Kind::Constant && len < usize::MAX >> 1 && self.chance(5) {
            let first = 64 * self.below(3);
            let after = self.below(70);
            let whole = self.fresh(plan, kind, dtype, first + len + after);
            let view = whole.view.part(first..first + len);
            self.note(format!("part {whole} {first}+{len}"));
            let part = Seen {
                view,
                offset: first,
                len,
                ..whole
            };
            self.builders[plan].model.views.push(part);
            return part;
        }
        self.fresh(plan, kind, dtype, len)
    }

    /// Row numbers, most of them below `rows`.
    pub fn indices(&mut self, plan: usize, count: usize, rows: u32) -> Seen {
        if self.chance(3) {
            return self.source(plan, DType::U32, count);
        }
        let data: Vec<u32> = (0..count)
            .map(|_| self.random.below(u64::from(rows) + 1) as u32)
            .collect();
        self.constant(plan, DType::U32, data)
    }

    /// Adds a view to those of every owner.
    pub fn remember(&mut self, seen: Seen) {
        if self.strangers.len() < 64 {
            self.strangers.push(seen);
        } else {
            let place = self.below(64);
            self.strangers[place] = seen;
        }
    }

    /// Words for an input or buffer: small multiples of a quarter, for which sums and products are
    /// exact, occasionally any.
    pub fn data(&mut self, dtype: DType, len: usize) -> Vec<u32> {
        let how = self.random.below(8);
        let mut one = |_| self.number(dtype, how);
        (0..len).flat_map(&mut one).collect()
    }

    fn number(&mut self, dtype: DType, how: u64) -> Vec<u32> {
        let small = self.random.below(65) as f64 / 4.0 - 8.0;
        let value = match how {
            0 => (self.random.bits() >> 40) as f64 / 83_886.0 - 100.0,
            1 if self.random.one_in(8) => self.random.pick(&[
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                0.0,
                -0.0,
                1e30,
                -1e-30,
            ]),
            _ => small,
        };
        match dtype {
            DType::F32 => vec![(value as f32).to_bits()],
            DType::F64 => vec![value.to_bits() as u32, (value.to_bits() >> 32) as u32],
            DType::U32 | DType::I32 if how < 2 => vec![self.random.bits() as u32],
            DType::U32 | DType::I32 => vec![self.random.below(12) as u32],
        }
    }
}

/// Checks for a success if expected, else for an error of the right kind.
pub fn judged<R>(result: tectum::Result<R>, wanted: Option<ErrorKind>) -> Result<Option<R>, Fault> {
    match (result, wanted) {
        (Ok(value), None) => Ok(Some(value)),
        (Ok(_), Some(kind)) => Err(format!("accepted; {kind:?} is documented")),
        (Err(error), Some(kind)) if error.kind() == kind => Ok(None),
        (Err(error), wanted) => Err(format!(
            "{:?}: {error}; {wanted:?} is documented",
            error.kind()
        )),
    }
}

thread_local! {
    /// Whether panics of this thread are captured, not printed.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    /// Location of the last such panic.
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The value of a call, or the text of its panic.
pub fn caught<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match info.location() {
            Some(location) if IS_QUIET.get() => PANICKED_AT.set(location.to_string()),
            _ if IS_QUIET.get() => PANICKED_AT.set(String::new()),
            _ => before(info),
        }));
    });
    let before = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    IS_QUIET.set(before);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        format!("{text} ({})", PANICKED_AT.take())
    })
}
