//! `tectum inspect FILE.mcap`: the topics of a recording.

use tectum::Result;
use tectum_control::recording::RecordingContents;

use super::InspectArgs;
use crate::count::counted;
use crate::table::{print, print_json, short, table};

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, or is not a whole recording; a standard output that cannot be
/// written.
pub fn inspect_recording(args: &InspectArgs) -> Result<()> {
    let contents = RecordingContents::read(&args.file)?;
    if args.json {
        return print_json(&contents);
    }
    print(&text(&contents))
}

fn text(contents: &RecordingContents) -> String {
    let head = ["topic", "type", "encoding", "messages", "rate (Hz)"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for topic in &contents.topics {
        rows.push(vec![
            topic.topic.clone(),
            topic.kind.clone(),
            topic.encoding.clone(),
            topic.messages.to_string(),
            short(topic.rate_hz),
        ]);
    }
    let mut text = table(&rows);
    text += &format!(
        "{} in {} s\n",
        counted(contents.messages, "message"),
        short(contents.seconds)
    );
    for topic in &contents.topics {
        text += &format!("\n{}\n", topic.topic);
        for field in &topic.fields {
            text += &format!("  {field}\n");
        }
    }
    text
}
