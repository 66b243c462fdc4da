if ! command -v dpkg-query > /dev/null || ! command -v systemctl > /dev/null; then
    fact package not-installed
    exit 0
fi
fact package "$(package_status)"
if [ -e "$state/package" ]; then fact installed-by remote; fi
unit_facts
if [ -x "$program" ]; then
    said=$("$program" exporter scrape --wait 0 2> /dev/null) && fact scrape "$said"
fi
exit 0
