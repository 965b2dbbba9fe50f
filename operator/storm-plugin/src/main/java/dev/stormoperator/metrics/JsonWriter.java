package dev.stormoperator.metrics;

import org.apache.storm.shade.net.minidev.json.JSONValue;

/** Appends JSON to a string, minding commas; snapshots have too many small objects for a tree of maps each second. */
final class JsonWriter {
    private final StringBuilder out = new StringBuilder(4096);
    private boolean needsComma;

    JsonWriter beginObject() {
        return open('{');
    }

    JsonWriter endObject() {
        return close('}');
    }

    JsonWriter beginArray() {
        return open('[');
    }

    JsonWriter endArray() {
        return close(']');
    }

    JsonWriter name(String name) {
        separate();
        quote(name);
        out.append(':');
        needsComma = false;
        return this;
    }

    JsonWriter value(String value) {
        separate();
        quote(value);
        return this;
    }

    JsonWriter value(long value) {
        separate();
        out.append(value);
        return this;
    }

    JsonWriter value(boolean value) {
        separate();
        out.append(value);
        return this;
    }

    /** Null where {@code value} is, or is no number that JSON knows. */
    JsonWriter value(Number value) {
        separate();
        boolean isNumber = value != null && Double.isFinite(value.doubleValue());
        out.append(isNumber ? value.toString() : "null");
        return this;
    }

    private JsonWriter open(char bracket) {
        separate();
        out.append(bracket);
        needsComma = false;
        return this;
    }

    private JsonWriter close(char bracket) {
        out.append(bracket);
        needsComma = true;
        return this;
    }

    private void separate() {
        if (needsComma) {
            out.append(',');
        }
        needsComma = true;
    }

    private void quote(String text) {
        out.append('"').append(JSONValue.escape(text)).append('"');
    }

    @Override
    public String toString() {
        return out.toString();
    }
}
