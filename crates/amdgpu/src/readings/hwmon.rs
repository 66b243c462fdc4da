//! hwmon (Documentation/hwmon/sysfs-interface.rst; amdgpu_pm.c names its files and labels).

use inventory::readings::{CardReadings, Clock, Fan, Power, Temperature, Voltage};

use super::source::Source;

/// The lowest possible temperature, in thousandths of a degree Celsius.
const ABSOLUTE_ZERO: i64 = -273_150;

pub(super) fn read(source: &mut Source<'_>, readings: &mut CardReadings) {
    let Some(hwmon) = source.names("hwmon").into_iter().find(|name| name.starts_with("hwmon")) else {
        return;
    };
    let folder = format!("hwmon/{hwmon}");
    let names = source.names(&folder);
    let mut files = Files { source, folder, names };
    for n in files.numbers("temp") {
        readings.temperatures.extend(files.temperature(n));
    }
    readings.power = files.power();
    readings.energy_joules = files.scaled("energy1_input", 1e6);
    for n in files.numbers("freq") {
        readings.clocks.extend(files.clock(n));
    }
    for n in files.numbers("in") {
        readings.voltages.extend(files.voltage(n));
    }
    for number in files.numbers("fan") {
        let rpm = files.scaled(&format!("fan{number}_input"), 1.0);
        let max_rpm = files.scaled(&format!("fan{number}_max"), 1.0);
        readings.fans.push(Fan { number, rpm, max_rpm });
    }
}

/// hwmon's folder and what is in it: only a file that is there is opened.
struct Files<'s, 'a> {
    source: &'s mut Source<'a>,
    folder: String,
    names: Vec<String>,
}

impl Files<'_, '_> {
    /// The numbers of the sensors of a kind, in order.
    fn numbers(&self, kind: &str) -> Vec<u32> {
        let number = |name: &String| name.strip_prefix(kind)?.strip_suffix("_input")?.parse().ok();
        let mut numbers: Vec<u32> = self.names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.truncate(super::MOST);
        numbers
    }

    fn path(&self, name: &str) -> Option<String> {
        let is_there = self.names.iter().any(|it| it == name);
        is_there.then(|| format!("{}/{name}", self.folder))
    }

    fn scaled(&mut self, name: &str, per_unit: f64) -> Option<f64> {
        let path = self.path(name)?;
        self.source.scaled(&path, per_unit)
    }

    fn celsius(&mut self, name: &str) -> Option<f64> {
        let path = self.path(name)?;
        let possible =
            |text: &str| text.parse().ok().filter(|millidegrees: &i64| *millidegrees >= ABSOLUTE_ZERO);
        self.source.parsed(&path, "temperature", possible).map(|millidegrees| millidegrees as f64 / 1e3)
    }

    /// A limit of 0 is one that the driver left unfilled: on old firmware of MI300 and on virtual functions
    /// (`smu_v13_0_6_get_thermal_temperature_range`).
    fn limit(&mut self, name: &str) -> Option<f64> {
        self.celsius(name).filter(|celsius| *celsius > 0.0)
    }

    fn label(&mut self, name: &str) -> Option<String> {
        let path = self.path(name)?;
        self.source.text(&path)
    }

    fn temperature(&mut self, n: u32) -> Option<Temperature> {
        let sensor = self.label(&format!("temp{n}_label")).unwrap_or_else(|| format!("temp{n}"));
        let celsius = self.celsius(&format!("temp{n}_input"));
        let critical_celsius = self.limit(&format!("temp{n}_crit"));
        let emergency_celsius = self.limit(&format!("temp{n}_emergency"));
        let is_known = celsius.or(critical_celsius).or(emergency_celsius).is_some();
        is_known.then_some(Temperature { sensor, celsius, critical_celsius, emergency_celsius })
    }

    /// The average where the driver has one: what it draws at the moment of a scrape says less.
    ///
    /// A limit of 0 says that the device measures no power. The driver gives 0 for the second die of an MI200, whose power
    /// its first die measures, and where the firmware limits no power (`aldebaran_get_power_limit`). The highest limit is
    /// still the board's there, and the draw 0. A person cannot set a limit of 0 (`smu_set_power_limit`).
    fn power(&mut self) -> Power {
        let mut watts = |name: &str| self.scaled(name, 1e6);
        let power = Power {
            watts: watts("power1_average").or_else(|| watts("power1_input")),
            cap_watts: watts("power1_cap"),
            cap_default_watts: watts("power1_cap_default"),
            cap_min_watts: watts("power1_cap_min"),
            cap_max_watts: watts("power1_cap_max"),
        };
        match power.cap_watts.or(power.cap_default_watts) {
            Some(0.0) => Power { watts: power.watts.filter(|watts| *watts > 0.0), ..Power::default() },
            _ => power,
        }
    }

    fn clock(&mut self, n: u32) -> Option<Clock> {
        let label = self.label(&format!("freq{n}_label"))?;
        let domain = ["sclk", "mclk"].into_iter().find(|domain| *domain == label)?;
        let hertz = self.scaled(&format!("freq{n}_input"), 1.0)?;
        Some(Clock { domain: domain.into(), instance: None, hertz })
    }

    fn voltage(&mut self, n: u32) -> Option<Voltage> {
        let rail = self.label(&format!("in{n}_label"))?;
        let volts = self.scaled(&format!("in{n}_input"), 1e3)?;
        Some(Voltage { rail, volts })
    }
}
