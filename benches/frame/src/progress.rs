//! Shows how far a run is: a bar on a terminal, one line per step elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a run of known steps.
pub struct Progress {
    bar: Option<ProgressBar>,
    steps: usize,
    done: usize,
    start: Instant,
}

impl Progress {
    /// Starts the progress of a run of `steps`, drawn on the error stream.
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(steps as u64);
            let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, steps, done: 0, start: Instant::now() }
    }

    /// Returns the time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Says which step begins.
    pub fn begin(&mut self, title: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(title.to_owned()),
            None => {
                let (step, seconds) = (self.done + 1, self.start.elapsed().as_secs_f64());
                eprintln!("[{step:>3}/{} {seconds:6.1} s] {title}", self.steps);
            }
        }
    }

    /// Shows how much is done of a part of the current step, from any thread; `None` where there is no bar.
    pub fn part(&self) -> Option<impl Fn(u64, u64) + Clone + Send + Sync + use<>> {
        let bar = self.bar.clone()?;
        let title = bar.message();
        Some(move |done: u64, all: u64| {
            bar.set_message(if done < all { format!("{title}: {} %", done * 100 / all) } else { title.clone() });
        })
    }

    /// Counts the step that was begun last as done.
    pub fn finish_step(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Prints results on the output stream, above the bar.
    pub fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{text}")),
            None => println!("{text}"),
        }
    }

    /// Takes the bar away and returns how long the run took.
    pub fn finish(self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.start.elapsed()
    }
}
