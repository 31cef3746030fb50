//! Files of rows: what they were measured on, and the rows, one per line.
//!
//! A file is an object of `about` and `rows`. In a row, fields that do not apply are left out, and so is the device
//! where it is the backend's in `about`. Numbers have six figures. A file that is an array of rows, as earlier versions
//! wrote it, is read too.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Record;

/// Machine, program and date of a file's rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The version of Warpset.
    pub version: String,
    /// When the run ended, in UTC; empty in files of earlier versions.
    pub date: String,
    /// `quick`, `standard` or `full`.
    pub effort: String,
    /// Statistic of the repeats on the CPU: `median` or `least`.
    pub counted: String,
    /// The arguments of `bench`.
    pub arguments: Vec<String>,
    /// By backend: processor or GPU, as rows name it.
    pub devices: BTreeMap<String, String>,
    /// The threads that the process could use.
    pub threads: usize,
    /// NVIDIA's driver, where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The other libraries with their versions.
    pub peers: BTreeMap<String, String>,
    /// Seconds that the run took.
    pub seconds: f64,
    /// Processes whose rows [`Run::join_repeats`] joined; 0 for the run of one.
    #[serde(skip)]
    pub repeats: usize,
}

impl About {
    /// Returns the day of the run; empty if it is not known.
    pub fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or_default()
    }
}

/// One run: its conditions and its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Conditions of the run.
    pub about: About,
    /// Its rows.
    pub rows: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Run { about: Box<About>, rows: Vec<Record> },
    Rows(Vec<Record>),
}

impl Run {
    /// Reads what an [`Output`] wrote.
    pub fn read(path: &Path) -> anyhow::Result<Run> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let run = Run::of_json(&text)
            .with_context(|| format!("{} is not what `cargo xtask bench --json` writes", path.display()))?;
        ensure!(!run.rows.is_empty(), "{} holds no rows", path.display());
        Ok(run)
    }

    /// Joins runs of equal programs, efforts and rows on equal machines: each row becomes the one with
    /// the median time, of two the slower.
    ///
    /// A run measures one library after the other, and other guests of a machine can take half of its speed for
    /// seconds. Runs in turns keep that out of the ratios.
    pub fn join_repeats(runs: Vec<Run>) -> Vec<Run> {
        let mut groups: Vec<Vec<Run>> = Vec::new();
        for run in runs {
            match groups.iter_mut().find(|group| group[0].is_repeat_of(&run)) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        groups.into_iter().map(Run::median).collect()
    }

    fn is_repeat_of(&self, other: &Run) -> bool {
        let conditions = |run: &Run| {
            let about = &run.about;
            let of = (about.version.clone(), about.effort.clone(), about.counted.clone(), about.threads);
            (of, about.devices.clone(), about.driver.clone(), about.peers.clone())
        };
        conditions(self) == conditions(other)
            && self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(row, other)| row.is_repeat_of(other))
    }

    fn median(mut runs: Vec<Run>) -> Run {
        let repeats = runs.len();
        let mut joined = runs.swap_remove(0);
        for (i, row) in joined.rows.iter_mut().enumerate() {
            let mut rows: Vec<Record> = runs.iter().map(|run| run.rows[i].clone()).collect();
            rows.push(row.clone());
            rows.sort_by(|a, b| a.seconds.partial_cmp(&b.seconds).unwrap_or(Ordering::Equal));
            let checked = rows.iter().all(|row| row.checked);
            *row = Record { checked, ..rows.swap_remove(repeats / 2) };
        }
        joined.about.repeats = if repeats > 1 { repeats } else { 0 };
        joined
    }

    fn of_json(text: &str) -> serde_json::Result<Run> {
        let (mut about, mut rows) = match serde_json::from_str(text)? {
            Stored::Run { about, rows } => (*about, rows),
            Stored::Rows(rows) => (About::default(), rows),
        };
        for row in &mut rows {
            if row.device.is_empty() {
                row.device = about.devices.get(&row.backend).cloned().unwrap_or_default();
            } else if !about.devices.contains_key(&row.backend) {
                about.devices.insert(row.backend.clone(), row.device.clone());
            }
        }
        Ok(Run { about, rows })
    }

    /// Writes the run as JSON, one row per line.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let rows =
            self.rows.iter().map(|row| Ok(self.line(row)?.to_string())).collect::<serde_json::Result<Vec<_>>>()?;
        let about = serde_json::to_string_pretty(&self.about)?;
        Ok(format!("{{\n\"about\": {about},\n\"rows\": [\n{}\n]\n}}\n", rows.join(",\n")))
    }

    fn line(&self, row: &Record) -> serde_json::Result<Value> {
        let mut line = serde_json::to_value(row)?;
        if let Value::Object(fields) = &mut line
            && self.about.devices.get(&row.backend) == Some(&row.device)
        {
            fields.remove("device");
        }
        round(&mut line);
        Ok(line)
    }
}

/// Rounds numbers to six figures: no measurement has more.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().and_then(|number| format!("{number:.5e}").parse().ok());
            if let Some(rounded) = rounded.and_then(serde_json::Number::from_f64) {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => (),
    }
}

/// A file that replaces its predecessor once it is complete.
pub struct Output {
    path: PathBuf,
    /// The file beside it that is renamed at the end; none where the path is no ordinary file, such as `/dev/stdout`.
    part: Option<PathBuf>,
}

impl Output {
    /// Checks, before minutes of work, that the file can be written.
    pub fn create(path: &Path) -> anyhow::Result<Output> {
        let in_place = path.metadata().is_ok_and(|metadata| !metadata.is_file());
        let part = if in_place {
            std::fs::OpenOptions::new().write(true).open(path).map(|_| None)
        } else {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.part", std::process::id()));
            std::fs::File::create(&name).map(|_| Some(PathBuf::from(name)))
        };
        let part = part.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Output { path: path.to_owned(), part })
    }

    /// Writes the file, and returns where it is.
    pub fn write(mut self, text: &str) -> anyhow::Result<PathBuf> {
        let to = self.part.as_ref().unwrap_or(&self.path);
        let mut written = std::fs::write(to, text);
        if let (Ok(()), Some(part)) = (&written, &self.part) {
            written = std::fs::rename(part, &self.path);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.part = None;
        Ok(self.path.clone())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Nothing is lost with it.
            let _ = std::fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let mut full = Record::new("bloom", "contains hit", 1000).param("variant", "split block").param("threads", 2);
        full = full.time(0.5);
        full.device = "a processor".into();
        full.bits_per_item = Some(16.0);
        full.fpr = Some(0.0013);
        full.limit_fraction = Some(0.9);
        full.peer = Some("fastbloom".into());
        full.peer_ratio = Some(3.25);
        full.checked = true;
        let mut copy = Record::new("machine", "memory copy", 0);
        copy.device = "another processor".into();
        let about = About {
            date: "2026-11-23T09:30:00Z".into(),
            devices: [("cpu".to_owned(), "a processor".to_owned())].into(),
            ..About::default()
        };
        Run { about, rows: vec![full, copy] }
    }

    #[test]
    fn rows_keep_what_applies_and_come_back() {
        let run = run();
        let value: Value = serde_json::from_str(&run.to_json().unwrap()).unwrap();
        let names = |row: usize| value["rows"][row].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(
            names(0),
            "backend bits_per_item checked fpr items_per_second limit_fraction n operation params peer peer_ratio seconds structure"
        );
        assert_eq!(names(1), "backend checked device n operation params structure");
        assert_eq!(value["rows"][0]["items_per_second"], 2000.0);
        assert_eq!(Run::of_json(&run.to_json().unwrap()).unwrap(), run);
        assert_eq!(run.about.day(), "2026-11-23");
    }

    #[test]
    fn repeats_are_joined_to_medians() {
        let timed = |seconds: f64, checked: bool| {
            let mut run = run();
            run.rows[0] = Record { checked, ..run.rows[0].clone().time(seconds).param("hashes_per_second", seconds) };
            run
        };
        let mut other = timed(9.0, true);
        other.about.threads = 7;
        let runs = vec![timed(3.0, true), other.clone(), timed(1.0, true), timed(2.0, false)];
        let joined = Run::join_repeats(runs);
        assert_eq!((joined.len(), &joined[1]), (2, &other));
        let row = &joined[0].rows[0];
        assert_eq!((joined[0].about.repeats, row.seconds, row.items_per_second), (3, Some(2.0), Some(500.0)));
        assert!(!row.checked);
        assert_eq!(joined[0].rows[1], run().rows[1]);
    }

    #[test]
    fn files_of_earlier_versions_are_read() {
        let run = run();
        let old = serde_json::to_string(&run.rows).unwrap();
        let read = Run::of_json(&old).unwrap();
        assert_eq!((read.rows, read.about.day()), (run.rows, ""));
        assert_eq!(read.about.devices["cpu"], "a processor");
        let nulls = r#"[{"structure":"bloom","operation":"insert","backend":"cpu","device":"x","n":1,"params":{},"seconds":null,
            "items_per_second":null,"bits_per_item":null,"fpr":null,"limit_fraction":null,"peer":null,"peer_ratio":null,"checked":false}]"#;
        assert_eq!(Run::of_json(nulls).unwrap().rows.len(), 1);
    }

    #[test]
    fn numbers_have_six_figures() {
        let mut value =
            serde_json::json!({"a": 0.123_456_789, "b": [1_234_567.8, 3], "c": "0.123456789", "d": 12_345_678});
        round(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"a": 0.123457, "b": [1_234_570.0, 3], "c": "0.123456789", "d": 12_345_678})
        );
    }

    #[test]
    fn a_file_is_whole_or_what_it_was() {
        let (path, text) = (std::env::temp_dir(), run().to_json().unwrap());
        let path = path.join(format!("warpset-record-{}.json", std::process::id()));
        Output::create(&path).unwrap().write(&text).unwrap();
        assert_eq!(Run::read(&path).unwrap(), run());
        // Work that ends early leaves what was there, and nothing else.
        let output = Output::create(&path).unwrap();
        let part = output.part.clone().unwrap();
        assert!(part.exists() && Run::read(&path).unwrap() == run());
        drop(output);
        assert!(!part.exists() && Run::read(&path).unwrap() == run());
        Output::create(Path::new("/dev/null")).unwrap().write(&text).unwrap();
        assert!(Output::create(Path::new("/no/such/folder/x.json")).is_err());
        for bad in ["{}", "[]"] {
            std::fs::write(&path, bad).unwrap();
            assert!(Run::read(&path).is_err());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
