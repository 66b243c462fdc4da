facts
if [ -x "$program" ]; then
    if output=$("$program" exporter scrape --wait 0 2>&1); then
        fact scrape "$(last)"
    else
        fact no-scrape "$(last)"
    fi
fi
exit 0
