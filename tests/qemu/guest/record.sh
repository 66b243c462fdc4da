# record.sh NAME: what an engine finds at its start, the GPUs' nodes by the CDI spec, and a worker's tags.
{
    if [ -e /etc/cdi/amd.json ]; then
        echo "spec:" $(grep -o 'renderD[0-9]*' /etc/cdi/amd.json | sort -u)
    else
        echo "no spec"
    fi
    [ -z "$CONCOURSE_TAG" ] || echo "tags: $CONCOURSE_TAG"
} >"/run/record.$1"
