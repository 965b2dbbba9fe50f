package dev.stormoperator.scheduler;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.shade.net.minidev.json.parser.JSONParser;
import org.apache.storm.shade.net.minidev.json.parser.ParseException;

/** Strict JSON (RFC 4627) in UTF-8, by the parser that Storm itself carries on every class path. */
final class Json {

    private static final int STRICT = JSONParser.MODE_RFC4627 | JSONParser.LIMIT_JSON_DEPTH;

    private Json() {
    }

    /** Reads any JSON value; the exception's message says what is wrong. */
    static Object read(byte[] document) throws ParseException, CharacterCodingException {
        String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(document)).toString();
        return new JSONParser(STRICT).parse(text);
    }

    static byte[] write(Map<String, ?> object) {
        return JSONValue.toJSONString(object).getBytes(StandardCharsets.UTF_8);
    }
}
