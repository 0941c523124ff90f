//! The order in which threads and blocks advance.

/// The order in which runnable threads, and blocks, are advanced between synchronisation points.
///
/// The manual allows every order, so a kernel whose results differ between two of them lacks
/// synchronisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Ascending indices, each thread as far as it can go.
    #[default]
    Forward,
    /// Descending indices, each thread as far as it can go.
    Reverse,
    /// A new permutation for every turn and short turns of random length, all drawn from the seed.
    Random(u64),
}

/// How many instructions a thread may execute in one turn of an ordered schedule.
const LONG_TURN: u64 = 4096;

/// Draws orders and lengths of turns.
pub(crate) struct Dealer {
    schedule: Schedule,
    state: u64,
}

impl Dealer {
    pub fn new(schedule: Schedule, stream: u64) -> Dealer {
        let seed = match schedule {
            Schedule::Random(seed) => seed,
            Schedule::Forward | Schedule::Reverse => 0,
        };
        Dealer {
            schedule,
            state: mix(seed ^ mix(stream)),
        }
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Fills `order` with the indices below `count`.
    pub fn deal(&mut self, count: usize, order: &mut Vec<usize>) {
        order.clear();
        order.extend(0..count);
        match self.schedule {
            Schedule::Forward => {}
            Schedule::Reverse => order.reverse(),
            Schedule::Random(_) => {
                for last in (1..count).rev() {
                    order.swap(last, (self.draw() % (last as u64 + 1)) as usize);
                }
            }
        }
    }

    pub fn turn(&mut self) -> u64 {
        match self.schedule {
            Schedule::Random(_) => 1 + self.draw() % 64,
            Schedule::Forward | Schedule::Reverse => LONG_TURN,
        }
    }
}

/// Scrambles a word so that every input bit affects every output bit.
pub(crate) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
