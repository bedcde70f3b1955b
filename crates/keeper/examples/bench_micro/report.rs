//! Prints what was measured, as text as it comes or as JSON at the end.

/// What was measured.
pub struct Report {
    json: bool,
    parameters: Vec<(String, String)>,
    results: Vec<(String, f64, &'static str)>,
}

impl Report {
    pub fn new(json: bool) -> Report {
        Report {
            json,
            parameters: Vec::new(),
            results: Vec::new(),
        }
    }

    pub fn parameter(&mut self, name: &str, value: &str) {
        if !self.json {
            println!("# {name} = {value}");
        }
        self.parameters.push((name.into(), value.into()));
    }

    pub fn result(&mut self, name: &str, value: f64, unit: &'static str) {
        if !self.json {
            println!("{name:<58} {value:>14.2} {unit}");
        }
        self.results.push((name.into(), value, unit));
    }

    pub fn finish(&self) {
        if !self.json {
            return;
        }
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .map(|(k, v)| format!("\"{k}\":\"{v}\""))
            .collect();
        let results: Vec<String> = self
            .results
            .iter()
            .map(|(k, v, u)| format!("{{\"name\":\"{k}\",\"value\":{v:.3},\"unit\":\"{u}\"}}"))
            .collect();
        println!(
            "{{\"parameters\":{{{}}},\"results\":[{}]}}",
            parameters.join(","),
            results.join(",")
        );
    }
}
