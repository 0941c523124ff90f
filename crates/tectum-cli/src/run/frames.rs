//! `--frames` and `--video`: pictures of the body in the run folder.

use std::path::{Path, PathBuf};

use clap::Args;
use tectum::{Error, Result, file};
use tectum_control::body::Picture;
use tectum_control::closed_loop::{ClosedLoop, Film};

/// The folder of the pictures, and the animation, in a run folder.
const FOLDER: &str = "frames";
const VIDEO: &str = "video.png";
/// Seconds from one picture of a video to the next by default.
const VIDEO_EVERY_S: f64 = 0.04;
/// Pixels of a picture.
const SIZE: (u32, u32) = (640, 480);

/// Pictures of a MuJoCo body.
#[derive(Args)]
pub struct FrameArgs {
    /// Writes a picture of a MuJoCo body every SECONDS of its time: frames/00000.png and so on in
    /// the run folder.
    ///
    /// Rendering takes its time from the loop: under the real clock answers may be late.
    #[arg(long, value_name = "SECONDS")]
    frames: Option<f64>,
    /// Writes the pictures as an animation too, video.png in the run folder.
    ///
    /// It is a PNG file with frames, which browsers play. Without --frames there is a picture every 0.04 s.
    #[arg(long)]
    video: bool,
}

impl FrameArgs {
    /// The given option.
    pub fn given(&self) -> Option<&'static str> {
        let video = self.video.then_some("--video");
        self.frames.map(|_| "--frames").or(video)
    }

    fn every_s(&self) -> Option<f64> {
        self.frames.or(self.video.then_some(VIDEO_EVERY_S))
    }

    /// Makes a loop take pictures.
    ///
    /// # Errors
    /// A body without pictures; what the renderer reports; `Io` naming the folder.
    pub fn begin(&self, closed_loop: &mut ClosedLoop, run: &Path) -> Result<()> {
        let Some(every_s) = self.every_s() else {
            return Ok(());
        };
        let folder = run.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|source| Error::io(folder.display(), source))?;
        closed_loop.film(Film {
            every_s,
            size: SIZE,
            save: Box::new(move |number, picture| {
                let path = path_of(&folder, number);
                file::write(&path, &encode(&[picture], None)?)
            }),
        })
    }

    /// Writes the animation.
    ///
    /// # Errors
    /// `Io` or `Data` naming a picture.
    pub fn end(&self, run: &Path) -> Result<()> {
        let (true, Some(every_s)) = (self.video, self.every_s()) else {
            return Ok(());
        };
        let folder = run.join(FOLDER);
        let paths = (0..).map(|number| path_of(&folder, number));
        let pictures = paths
            .take_while(|path| path.exists())
            .map(|path| read(&path));
        let pictures = pictures.collect::<Result<Vec<_>>>()?;
        if pictures.is_empty() {
            return Ok(());
        }
        file::write(&run.join(VIDEO), &encode(&pictures, Some(every_s))?)
    }
}

fn path_of(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:05}.png"))
}

/// A PNG file of pictures of one size; an animation if they have a duration in seconds.
fn encode(pictures: &[Picture], every_s: Option<f64>) -> Result<Vec<u8>> {
    let failed =
        |error: png::EncodingError| Error::data("a picture cannot be encoded").with_source(error);
    let (mut bytes, first) = (Vec::new(), &pictures[0]);
    let mut encoder = png::Encoder::new(&mut bytes, first.width, first.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    if let Some(every_s) = every_s {
        encoder
            .set_animated(pictures.len() as u32, 0)
            .map_err(failed)?;
        let milliseconds = (every_s * 1e3).round().clamp(1.0, 65_535.0) as u16;
        encoder
            .set_frame_delay(milliseconds, 1000)
            .map_err(failed)?;
    }
    let mut writer = encoder.write_header().map_err(failed)?;
    for picture in pictures {
        writer.write_image_data(&picture.rgb).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn read(path: &Path) -> Result<Picture> {
    let file = std::fs::File::open(path).map_err(|source| Error::io(path.display(), source))?;
    let failed = |error| Error::data(path.display().to_string()).with_source(error);
    let mut reader = png::Decoder::new(std::io::BufReader::new(file))
        .read_info()
        .map_err(failed)?;
    let mut rgb = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut rgb).map_err(failed)?;
    Ok(Picture {
        width: info.width,
        height: info.height,
        rgb,
    })
}
