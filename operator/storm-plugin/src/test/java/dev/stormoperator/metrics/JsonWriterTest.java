package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.junit.jupiter.api.Test;

class JsonWriterTest {
    @Test
    void nestsAndSeparates() {
        JsonWriter json = new JsonWriter().beginObject();
        json.name("a").value(1).name("b").beginArray().value(true).beginArray().endArray().value("x").endArray();
        json.name("c").beginObject().endObject().name("d").value(2);
        assertEquals("{\"a\":1,\"b\":[true,[],\"x\"],\"c\":{},\"d\":2}", json.endObject().toString());
    }

    @Test
    void whatIsNoNumberIsNull() {
        JsonWriter json = new JsonWriter().beginArray();
        json.value(Double.NaN).value((Number) null).value(Double.valueOf(0.5)).value(Long.MAX_VALUE);
        assertEquals("[null,null,0.5,9223372036854775807]", json.endArray().toString());
    }

    @Test
    void anyNameSurvives() {
        String name = "we\"ird\\ \n\u0001 strea\u2028m/\u00fc";
        String text = new JsonWriter().beginObject().name(name).value(name).endObject().toString();
        assertEquals(Map.of(name, name), JSONValue.parse(text));
    }
}
