//! The slots of a plan.

use tectum::View;

/// The slots of a plan.
#[derive(Clone)]
pub struct Views {
    pub clock: View,
    pub inputs: View,
    pub state: View,
    pub sums: View,
    pub fired: View,
    pub totals: View,
    pub head: View,
    pub events: View,
    pub watched: Option<View>,
    pub candidates: Option<View>,
    /// If there are several shards: the firings of all of them, as bits.
    pub exchanged: Option<View>,
    pub learned: Option<LearningViews>,
    /// The unit of each sender.
    pub senders: View,
    /// The ends of ranges of neurons, and their profile.
    pub runs: View,
    pub profiles: View,
    /// The rows of each launch.
    pub rows: Vec<RowViews>,
}

/// The fixed synapses of a launch.
#[derive(Clone, Copy)]
pub struct RowViews {
    pub starts: View,
    pub words: View,
}

impl Views {
    /// Data that two plans of the same network share.
    pub fn shared(&self) -> Vec<View> {
        let learned = self.learned.iter().flat_map(|views| {
            let starts = views.starts.iter().flatten().copied();
            [
                views.synapses,
                views.histories,
                views.ledger,
                views.memory_state,
            ]
            .into_iter()
            .chain(starts)
        });
        let rows = self.rows.iter().flat_map(|rows| [rows.starts, rows.words]);
        let own = [
            self.state,
            self.sums,
            self.fired,
            self.totals,
            self.senders,
            self.runs,
            self.profiles,
        ];
        own.into_iter()
            .chain(self.candidates)
            .chain(learned)
            .chain(rows)
            .collect()
    }
}

/// The slots of learning state.
#[derive(Clone)]
pub struct LearningViews {
    pub synapses: View,
    pub histories: View,
    pub ledger: View,
    pub memory_state: View,
    /// By rule and launch: the starts of rows.
    pub starts: Vec<Vec<View>>,
}
